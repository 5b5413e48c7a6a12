// A run that is cancelled and resumed gives the bits of the undisturbed one; and where the time of rounds went.
#include <catch2/catch.hpp>

#include "points.h"
#include "scripted_work.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t resumed_rounds = 6;

/// `norm` is a layer behind the first one, or nothing.
std::string resumed_experiment(const std::string& state, const std::string& norm) {
    auto text = points_experiment(resumed_rounds,
                                  "optimizer = { kind = \"sgd\", learning_rate = 0.1, momentum = 0.9 }\nbatch = 8\n"
                                  "local_epochs = 2\noptimizer_state = \"" +
                                      state + "\"",
                                  "min_clients = 3");
    const std::string first = "\"dense 8\", ";
    text.insert(text.find(first) + first.size(), norm.empty() ? "" : "\"" + norm + "\", ");
    return text + "\n[evaluation]\nwhere = \"none\"\n";
}

/// The last model when the run is cancelled and resumed after each of these rounds; a client crashes in between.
Digest model_after(const std::string& state, const std::vector<std::uint32_t>& cancelled_after,
                   const std::string& norm = "") {
    RealCast cast(3);
    World world(cast.world());
    world.start();
    REQUIRE(world.run_until([&] { return world.coordinator().machine()->members().members().size() == 3; }, 60s));
    world.submit(resumed_experiment(state, norm));
    ExperimentId id = 1;
    for (const auto round : cancelled_after) {
        REQUIRE(world.run_until([&] { return world.rounds(id) == round; }, 60s));
        world.run_for(3ms);  // the next round is under way
        world.request("experiment.cancel", Json::object().set("experiment", id));
        world.crash_client(1, 100ms);
        world.run_for(30s);
        world.request("experiment.resume", Json::object().set("experiment", id));
        ++id;
    }
    REQUIRE(world.run_until([&] { return world.over(id); }, 600s));
    REQUIRE(world.state(id) == "succeeded");
    REQUIRE(world.rounds(id) == resumed_rounds);
    for (const auto& rule : world.broken_rules()) {
        FAIL_CHECK(rule);
    }
    return world.last_model(id);
}

}  // namespace

TEST_CASE("a resumed experiment ends with the bits of the undisturbed run, momentum included", "[resume][sim]") {
    const std::string state = GENERATE("reset", "keep");
    const auto undisturbed = model_after(state, {});
    CHECK(model_after(state, {2}) == undisturbed);
    CHECK(model_after(state, {1, 4}) == undisturbed);
    CHECK(model_after(state == "keep" ? "reset" : "keep", {}) != undisturbed);
}

TEST_CASE("a resumed experiment goes on with each client's own norms", "[resume][sim]") {
    const auto undisturbed = model_after("reset", {}, "batchnorm local");
    CHECK(model_after("reset", {2}, "batchnorm local") == undisturbed);
    CHECK(model_after("reset", {1, 4}, "batchnorm local") == undisturbed);
    CHECK(model_after("reset", {}, "batchnorm") != undisturbed);
}

TEST_CASE("a round's parts of time sum to its time, in every round of a disturbed run", "[clock][sim]") {
    ScriptedWorld scripted(4);
    scripted.clients[2]->training_time = [](const Assign& assign) { return assign.lease.round == 2 ? 20s : 1s; };
    scripted.submit(experiment_text(6, "quorum = 2\nstraggler_deadline = \"5s\"\nrejoin = \"1s\""));
    REQUIRE(scripted.world->run_until([&] { return scripted.world->rounds(1) == 3; }, 60s));
    scripted.world->crash_client(1, 3s);
    REQUIRE(scripted.ends_within(120s));
    const auto& resumed_rounds = scripted.world->coordinator().store().rounds(1);
    REQUIRE(resumed_rounds.size() == 7);
    for (std::size_t round = 1; round < resumed_rounds.size(); ++round) {
        const auto& time = resumed_rounds[round].summary["time"];
        double sum = 0;
        for (const auto& [name, value] : time.fields()) {
            sum += name == "wall" || name == "last" ? 0 : value.number();
        }
        INFO(time.dump());
        CHECK(sum == Approx(time["wall"].number()).epsilon(1e-9));
        CHECK(time["wall"].number() == Approx(resumed_rounds[round].summary["seconds"].number()));
        CHECK(time["wall"].number() > 0.9);
    }
    CHECK(resumed_rounds[2].summary["time"]["last"].text() == "c");
    CHECK(resumed_rounds[2].summary["member_times"]["c"]["end"].text() == "straggler_deadline");
}

}  // namespace causeway::simulation
