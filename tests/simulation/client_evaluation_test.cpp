// Evaluation on the clients in the virtual world: delays do not show in the figures, a lost client is named, nothing
// waits for it, and patience works with what clients measure.
#include <catch2/catch.hpp>

#include "points.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t evaluation_rounds = 4;

std::string text(const std::string& evaluation, const std::string& learning_rate = "0.2") {
    return points_experiment(
               evaluation_rounds,
               "optimizer = { kind = \"sgd\", learning_rate = " + learning_rate + " }\nbatch = 8\nlocal_epochs = 1",
               "quorum = \"50%\"\nmin_clients = 2\nstraggler_deadline = \"20s\"\nrejoin = \"1s\"") +
           "\n[evaluation]\nwhere = \"clients\"\nholdout = \"20%\"\n" + evaluation;
}

struct EvaluationRun {
    std::vector<Json> events;
    Digest model;
    std::string state;
    std::string reason;
    std::uint32_t evaluated = 0;  // the last round with an evaluation in the store
};

/// Delays in milliseconds, one a client. `disturb` may crash somebody.
EvaluationRun run_evaluations(const std::string& experiment, const std::vector<int>& delays,
                              const std::function<void(World&)>& disturb = {}) {
    RealCast cast(delays.size());
    auto options = cast.world();
    for (std::size_t i = 0; i < delays.size(); ++i) {
        options.clients[i].link.up.delay = options.clients[i].link.down.delay = std::chrono::milliseconds(delays[i]);
    }
    World world(std::move(options));
    world.start();
    world.run_for(5s);
    world.submit(experiment);
    world.request("experiment.watch", Json::object().set("experiment", 1).set("from", 1));
    if (disturb) {
        disturb(world);
    }
    REQUIRE(world.run_until([&] { return world.over(1); }, 1h));
    world.run_for(1s);
    CHECK(world.broken_rules().empty());
    EvaluationRun done{world.events(), world.last_model(1), world.state(1), world.reason(1)};
    for (const auto& event : done.events) {
        const bool measured = event["event"].text() == "round" && event["accuracy"].is_number();
        done.evaluated = measured ? static_cast<std::uint32_t>(event["round"].integer()) : done.evaluated;
    }
    return done;
}

const Json& last_evaluated_round(const EvaluationRun& run_evaluations) {
    REQUIRE(run_evaluations.events.size() >= 2);
    return run_evaluations.events[run_evaluations.events.size() - 2];
}

TEST_CASE("figures of clients are the same for every order of arrival") {
    const auto first = run_evaluations(text(""), {1, 5, 9});
    CHECK(first.state == "succeeded");
    const auto clients = last_evaluated_round(first)["evaluated_by_clients"];
    CHECK(clients["count"].integer() == 3);
    CHECK(last_evaluated_round(first)["accuracy"].number() == clients["accuracy"].number());
    for (const std::vector<int>& delays : {std::vector{9, 5, 1}, std::vector{200, 1, 50}}) {
        const auto other = run_evaluations(text(""), delays);
        CHECK(other.model == first.model);
        CHECK(last_evaluated_round(other)["evaluated_by_clients"].dump() == clients.dump());
    }
}

TEST_CASE("evaluation changes neither the model nor the rounds") {
    const auto with = run_evaluations(text(""), {1, 5, 9});
    const auto seldom = run_evaluations(text("every = 4\n"), {1, 5, 9});
    CHECK(with.model == seldom.model);
    auto without = text("");
    without.replace(without.find("\"clients\""), 9, "\"none\"");
    const auto unmeasured = run_evaluations(without, {1, 5, 9});
    CHECK(unmeasured.state == "succeeded");
    CHECK(unmeasured.evaluated == 0);
    auto nothing_held_out = text("");  // as `none`, clients then train on all of their examples
    nothing_held_out.replace(nothing_held_out.find("20%"), 3, "0%");
    CHECK(run_evaluations(nothing_held_out, {1, 5, 9}).model == unmeasured.model);
    CHECK(unmeasured.events.size() == with.events.size());
    CHECK(seldom.events[0]["accuracy"].is_null());
    CHECK(last_evaluated_round(seldom)["accuracy"].is_number());
}

TEST_CASE("a client that is lost is left out with its name said, and the run ends") {
    const auto lost = run_evaluations(text(""), {1, 5, 9}, [](World& world) {
        REQUIRE(world.run_until([&] { return world.rounds(1) >= 2; }, 1h));
        world.crash_client(2, 1h);
    });
    CHECK(lost.state == "succeeded");
    const auto& last = last_evaluated_round(lost);
    CHECK(last["evaluated_by_clients"]["count"].integer() == 2);
    bool named = false;
    for (const auto& event : lost.events) {
        named = named || event["accuracy_note"].text().find("client-2 (gone)") != std::string::npos;
        CHECK((event["event"].text() != "round" || event["accuracy"].is_number()));
    }
    CHECK(named);
}

TEST_CASE("patience ends a run by what clients measure") {
    const auto experiment = text("patience = 1\nmetric = \"loss\"\n", "2");  // steps so long that the loss grows
    const auto stopped = run_evaluations(experiment, {1, 5, 9});
    CHECK(stopped.state == "succeeded");
    CHECK(stopped.evaluated < evaluation_rounds);
    CHECK_THAT(stopped.reason, Catch::StartsWith("early_stop: 1 rounds without a better loss than"));
    CHECK_THAT(stopped.reason, Catch::EndsWith("of round " + std::to_string(stopped.evaluated - 1)));
    const auto again = run_evaluations(experiment, {90, 5, 1});
    CHECK(again.reason == stopped.reason);
    CHECK(again.model == stopped.model);
    CHECK(again.events.size() == stopped.events.size());
}

TEST_CASE("a restart of the coordinator in the middle still evaluates the last round") {
    const auto restarted = run_evaluations(text(""), {1, 5, 9}, [](World& world) {
        REQUIRE(world.run_until([&] { return world.rounds(1) >= evaluation_rounds; }, 1h));
        world.crash_coordinator(2s);
        world.run_for(3s);  // whoever watched has lost its connection with it
        world.request("experiment.watch", Json::object().set("experiment", 1).set("from", evaluation_rounds));
    });
    CHECK(restarted.state == "succeeded");
    CHECK(restarted.model == run_evaluations(text(""), {1, 5, 9}).model);
    CHECK(restarted.evaluated == evaluation_rounds);
    CHECK(last_evaluated_round(restarted)["evaluated_by_clients"]["count"].integer() == 3);
}

}  // namespace
}  // namespace causeway::simulation
