// The best model and the end for want of a better one, in virtual time: after the same round however long evaluations
// take, and wherever the coordinator dies.
#include <catch2/catch.hpp>

#include "scripted_work.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t early_stop_rounds = 12;

/// Rounds 2 and 4 are the most accurate, and 4 has the lower loss, which falls in every round: it is the best.
double best_at_4(std::uint32_t round) {
    constexpr double accuracies[] = {0.5, 0.8, 0.7, 0.8, 0.6, 0.7};
    return accuracies[std::min<std::uint32_t>(round, 6) - 1];
}

std::string patient_experiment(const std::string& evaluation) {
    return experiment_text(early_stop_rounds, "min_clients = 2\nrejoin = \"10m\"\n[evaluation]\n" + evaluation);
}

struct EndOfRun {
    std::string state;
    std::string reason;
    std::uint32_t rounds = 0;
    Digest model;
    bool operator==(const EndOfRun&) const = default;
};

EndOfRun end_of_early_stop(const ScriptedWorld& scripted) {
    const auto& world = *scripted.world;
    return {world.state(1), world.reason(1), world.rounds(1), world.last_model(1)};
}

EndOfRun undisturbed_stop(const std::string& evaluation, Duration evaluation_time) {
    ScriptedWorld scripted(2);
    scripted.work.accuracy = best_at_4;
    scripted.work.evaluation_time = evaluation_time;
    scripted.submit(patient_experiment(evaluation));
    REQUIRE(scripted.ends_within(3600s));
    REQUIRE(scripted.world->broken_rules().empty());
    return end_of_early_stop(scripted);
}

}  // namespace

TEST_CASE("patience ends a run so many rounds after its best, as succeeded, and says which round that was", "[sim]") {
    ScriptedWorld scripted(2);
    scripted.work.accuracy = best_at_4;
    scripted.submit(patient_experiment("patience = 3"));
    scripted.world->request("experiment.watch", Json::object().set("experiment", 1));
    REQUIRE(scripted.ends_within(600s));
    scripted.world->run_for(1s);
    CHECK(scripted.world->state(1) == "succeeded");
    CHECK_THAT(scripted.world->reason(1), Catch::StartsWith("early_stop: 3 rounds") && Catch::Contains("of round 4"));
    CHECK(scripted.world->rounds(1) == 7);
    const auto done = scripted.world->events().back();
    CHECK(done["event"].text() == "done");
    CHECK(done["rounds"].integer() == 7);
    CHECK(done["best_round"].integer() == 4);
    for (const auto& client : scripted.clients) {
        CHECK(client->held().empty());
        CHECK(client->trainings == 7);  // nobody began a round that is not run
    }
}

TEST_CASE("the run ends after the same round however long an evaluation takes", "[sim]") {
    for (const auto* evaluation : {"patience = 1", "patience = 3", "patience = 4\nevery = 2"}) {
        INFO(evaluation);
        const auto quick = undisturbed_stop(evaluation, 1ms);
        CHECK_THAT(quick.reason, Catch::StartsWith("early_stop"));
        CHECK(quick.rounds < early_stop_rounds);
        CHECK(undisturbed_stop(evaluation, 100s) == quick);
    }
}

TEST_CASE("wherever the coordinator dies, the run ends after the same round with the same model", "[sim][faults]") {
    const auto expected = undisturbed_stop("patience = 3", 500ms);
    for (std::uint32_t effects = 1; effects < 60; ++effects) {
        INFO("the coordinator dies after " << effects << " effects, and again after as many");
        ScriptedWorld scripted(2);
        scripted.work.accuracy = best_at_4;
        scripted.work.evaluation_time = 500ms;
        scripted.submit(patient_experiment("patience = 3"));
        scripted.world->run_for(10ms);  // it is stored: a submission that was not may be lost
        scripted.world->crash_coordinator_after(effects, 1s);
        scripted.world->at(scripted.world->now() + 8s, [&] { scripted.world->crash_coordinator_after(effects, 1s); });
        REQUIRE(scripted.ends_within(600s));
        scripted.world->run_for(60s);
        REQUIRE(scripted.world->broken_rules().empty());
        REQUIRE(scripted.work.mistakes.empty());
        REQUIRE(end_of_early_stop(scripted) == expected);
    }
}

TEST_CASE("by loss another round may be the best", "[sim]") {
    ScriptedWorld scripted(2);
    scripted.work.accuracy = best_at_4;  // the loss falls in every round
    scripted.submit(patient_experiment("metric = \"loss\"\npatience = 3"));
    REQUIRE(scripted.ends_within(600s));
    CHECK(scripted.world->reason(1).empty());
    CHECK(scripted.world->rounds(1) == early_stop_rounds);
    CHECK(scripted.world->coordinator().machine()->experiments().at(1).best()->round == early_stop_rounds);
}

TEST_CASE("without patience, or without evaluations, all rounds are run", "[sim]") {
    for (const int failures : {0, 1000}) {
        ScriptedWorld scripted(2);
        scripted.work.accuracy = best_at_4;
        scripted.work.failures = {{"evaluate", failures}};
        scripted.submit(patient_experiment(failures == 0 ? "patience = \"off\"" : "patience = 1"));
        REQUIRE(scripted.ends_within(600s));
        CHECK(scripted.world->state(1) == "succeeded");
        CHECK(scripted.world->reason(1).empty());
        CHECK(scripted.world->rounds(1) == early_stop_rounds);
        const auto* best = scripted.world->coordinator().machine()->experiments().at(1).best();
        CHECK((best == nullptr) == (failures > 0));
    }
}

TEST_CASE("the best model can be asked for, and is not found before there is one", "[sim]") {
    ScriptedWorld scripted(2);
    scripted.work.accuracy = best_at_4;
    scripted.submit(patient_experiment("every = 2"));
    scripted.world->request("model.where", Json::object().set("experiment", 1).set("best", true));
    scripted.world->run_for(10ms);
    REQUIRE_FALSE(scripted.world->replies().empty());
    REQUIRE(scripted.world->replies().back().error);
    CHECK(scripted.world->replies().back().error->code == "unknown_round");
    REQUIRE(scripted.ends_within(600s));
    scripted.world->request("model.where", Json::object().set("experiment", 1).set("best", true));
    scripted.world->run_for(10ms);
    const auto reply = Json::parse(scripted.world->replies().back().body);
    REQUIRE(reply);
    CHECK((*reply)["round"].integer() == 4);  // 2 is as accurate, with a higher loss
}

}  // namespace causeway::simulation
