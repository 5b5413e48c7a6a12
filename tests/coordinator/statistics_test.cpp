// Round 0 of `data.normalise = "federated"`: who is asked, what its end stores at once, what a restart goes on with.
#include <catch2/catch.hpp>

#include "bench.h"
#include "coordinator/decisions.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;

std::string normalised(const std::string& sync = "min_clients = 2") {
    auto file = bench_experiment(sync);
    const std::string shape = "shape = [8, 8, 1]\n";
    return file.replace(file.find(shape), shape.size(), shape + "normalise = \"federated\"\n");
}

/// Two clients are there, and round 0 is open.
void open_statistics(MachineBench& bench) {
    bench.join(1s, "a");
    bench.join(1s, "b");
    bench.submit(2s, normalised());
}

void give_sums(MachineBench& bench, Instant now, const std::string& node) {
    const auto update = sha256(node + " sums");
    const HeldUpdate held{1, 0, update, 10, 5, {}, {}};
    bench.step(now, MessageReceived{bench.sessions.at(node), Offer{{1, 1, 0, 1}, held}});
    bench.step(now, UpdateAbsorbed{1, 0, 1, node, update, {}, {}});
}

void end_statistics(MachineBench& bench, Instant now) {
    SnapshotWritten written{1, 0, MachineBench::model(1, 0), 10, 0, 0, 0};
    written.normalise = "1.5 0.25";
    written.examples = 10;
    bench.step(now, written);
}

const SaveDecision* statistics_decision(const CoordinatorEffects& effects, const std::string& kind) {
    for (const auto& persist : effects.persist) {
        if (const auto* found = std::get_if<SaveDecision>(&persist); found != nullptr && found->kind == kind) {
            return found;
        }
    }
    return nullptr;
}

}  // namespace

TEST_CASE("before round 1 everybody who is there is asked for its sums, and given no model", "[statistics]") {
    MachineBench bench;
    open_statistics(bench);
    const auto* cohort = statistics_decision(bench.last, decisions::cohort);
    REQUIRE(cohort != nullptr);
    CHECK(cohort->round == 0);
    CHECK(cohort->detail["members"].dump() == R"(["a","b"])");
    for (const auto* node : {"a", "b"}) {
        const auto* assign = sent<Assign>(bench.last, bench.sessions.at(node));
        REQUIRE(assign != nullptr);
        CHECK(assign->program == "statistics");
        CHECK(assign->lease.round == 0);
        CHECK(assign->model.empty());
        CHECK(assign->cohort == 2);
    }
    REQUIRE(bench.last.jobs.size() == 1);
    const auto* open = std::get_if<OpenRound>(&bench.last.jobs.front());
    REQUIRE(open != nullptr);
    CHECK(open->members == 2);
    CHECK(bench.experiment(1).status({})["phase"].text() == "summing columns");
}

TEST_CASE("the end of round 0 stores numbers, digest, participants, model and cohort at once", "[statistics]") {
    MachineBench bench;
    open_statistics(bench);
    give_sums(bench, 3s, "b");
    give_sums(bench, 4s, "a");
    REQUIRE(bench.last.jobs.size() == 1);
    REQUIRE(std::holds_alternative<FinishRound>(bench.last.jobs.front()));
    end_statistics(bench, 5s);
    const auto* saved = persisted<SaveExperiment>(bench.last);
    REQUIRE(saved != nullptr);
    CHECK_THAT(saved->file, Catch::Contains("normalise = \"federated 1.5 0.25\""));
    const auto* found = statistics_decision(bench.last, decisions::statistics);
    REQUIRE(found != nullptr);
    CHECK(found->detail["sha256"].text() == sha256("1.5 0.25").hex());
    CHECK(found->detail["examples"].integer() == 10);
    const auto* commit = persisted<SaveCommit>(bench.last);
    REQUIRE(commit != nullptr);
    CHECK(commit->round == 0);
    CHECK(commit->participants.size() == 2);
    CHECK(commit->next_cohort == std::vector<std::string>{"a", "b"});
    const auto* committed = sent<Committed>(bench.last, bench.sessions.at("a"));
    REQUIRE(committed != nullptr);
    CHECK(committed->counted);
    const auto* assign = sent<Assign>(bench.last, bench.sessions.at("a"));
    REQUIRE(assign != nullptr);
    CHECK(assign->lease.round == 1);
    CHECK(assign->model == MachineBench::model(1, 0));
    CHECK_THAT(assign->data_options, Catch::Contains("normalise%201.5%200.25"));
    CHECK(assign->program != "statistics");
}

TEST_CASE("a watch tells of round 0 before the first round, also after a restart, and of no other experiment's",
          "[statistics]") {
    MachineBench bench;
    open_statistics(bench);
    CHECK(bench.experiment(1).event_count() == 0);
    give_sums(bench, 3s, "a");
    give_sums(bench, 4s, "b");
    end_statistics(bench, 5s);
    const auto check = [](const ExperimentMachine& experiment) {
        CHECK(experiment.first_event_round() == 0);
        REQUIRE(experiment.event_count() == 1);
        const auto event = *experiment.event(0);
        CHECK(event["event"].text() == "statistics");
        CHECK(event["clients"].integer() == 2);
        CHECK(event["cohort"].integer() == 2);
        CHECK(event["columns"].integer() == 1);
    };
    check(bench.experiment(1));
    const auto* commit = persisted<SaveCommit>(bench.last);
    REQUIRE(commit != nullptr);
    Recovered recovered{2, {}, {}};
    recovered.experiments.push_back({.saved = bench.experiment(1).saved()});
    recovered.experiments[0].add({0, commit->model, 10, commit->summary, std::nullopt});
    MachineBench again({}, recovered);
    check(again.experiment(1));

    MachineBench other;
    other.join(1s, "a");
    other.submit(2s, bench_experiment(""));
    other.make_model(3s, 1);
    CHECK(other.experiment(1).first_event_round() == 1);
    CHECK(other.experiment(1).event_count() == 0);
}

TEST_CASE("a restart in round 0 asks the same nodes, and one after it has the numbers", "[statistics]") {
    MachineBench first;
    open_statistics(first);
    Recovered recovered{2, {}, {{"a", {{"digits", {}, 100, {8, 8, 1}, 10}}}}};
    recovered.experiments.push_back({.saved = first.experiment(1).saved()});
    recovered.experiments[0].decisions.push_back({1, 0, decisions::cohort, decisions::cohort_detail({"a", "b"})});
    MachineBench again({}, recovered);
    CHECK(again.cohort(1) == std::vector<std::string>{"a", "b"});
    Hello hello;
    const HeldUpdate held{1, 0, sha256("a sums"), 10, 5, {}, {}};
    hello.held.push_back(held);
    again.join(1s, "a", hello);
    const auto* assign = sent<Assign>(again.last, again.sessions.at("a"));
    REQUIRE(assign != nullptr);
    CHECK(assign->program == "statistics");

    give_sums(first, 3s, "a");
    give_sums(first, 4s, "b");
    end_statistics(first, 5s);
    Recovered after{2, {}, {}};
    after.experiments.push_back({.saved = first.experiment(1).saved()});
    const auto* commit = persisted<SaveCommit>(first.last);
    REQUIRE(commit != nullptr);
    after.experiments[0].add({0, commit->model, 10, commit->summary, std::nullopt});
    after.experiments[0].next_cohort = commit->next_cohort;
    after.experiments[0].last_counted["a"] = {0, sha256("a sums")};
    MachineBench later({}, after);
    later.join(1s, "a", hello);
    const auto* counted = sent<Committed>(later.last, later.sessions.at("a"));
    REQUIRE(counted != nullptr);
    CHECK(counted->counted);
    const auto* work = sent<Assign>(later.last, later.sessions.at("a"));
    REQUIRE(work != nullptr);
    CHECK(work->lease.round == 1);
    CHECK_THAT(work->data_options, Catch::Contains("normalise"));
}

TEST_CASE("a node that keeps its sums costs the quorum, with its rule named, or is left out of them", "[statistics]") {
    MachineBench bench;
    open_statistics(bench);
    bench.step(3s, MessageReceived{bench.sessions.at("a"),
                                   Decline{{1, 1, 0, 1}, "policy_statistics", "policy.toml:3:1: share_statistics"}});
    CHECK(bench.state(1) == "failed");
    CHECK_THAT(bench.experiment(1).saved().reason,
               Catch::Contains("quorum_lost") && Catch::Contains("a: declined: policy_statistics: policy.toml:3:1"));

    MachineBench other;
    other.join(1s, "a");
    other.join(1s, "b");
    other.submit(2s, normalised("quorum = 1\nmin_clients = 2"));
    other.step(3s, MessageReceived{other.sessions.at("a"), Decline{{1, 1, 0, 1}, "policy_statistics", "no"}});
    other.step(3s, MessageReceived{other.sessions.at("a"), Decline{{1, 1, 0, 1}, "dropped", "declined"}});
    give_sums(other, 4s, "b");
    end_statistics(other, 5s);
    CHECK(other.state(1) == "running");
    CHECK(other.cohort(1) == std::vector<std::string>{"a", "b"});  // it trains with the others' numbers
}

TEST_CASE("numbers that a file has already are not asked for again", "[statistics]") {
    MachineBench bench;
    bench.join(1s, "a");
    auto file = normalised("min_clients = 1");
    const std::string word = "\"federated\"";
    bench.submit(2s, file.replace(file.find(word), word.size(), "\"federated 0.5 2\""));
    REQUIRE(bench.last.jobs.size() == 1);
    CHECK(std::holds_alternative<MakeModel>(bench.last.jobs.front()));
}

TEST_CASE("a resumed experiment keeps its parent's numbers, and no others", "[statistics]") {
    MachineBench bench;
    open_statistics(bench);
    give_sums(bench, 3s, "a");
    give_sums(bench, 4s, "b");
    end_statistics(bench, 5s);
    bench.ask(6s, "experiment.cancel", Json::object().set("experiment", 1));
    const auto other = bench.ask(7s, "experiment.resume",
                                 Json::object().set("experiment", 1).set(
                                     "set", Json::array().push("data.normalise=none")));
    REQUIRE(other.error);
    CHECK(other.error->code == "cannot_change");
    REQUIRE_FALSE(bench.ask(8s, "experiment.resume", Json::object().set("experiment", 1)).error);
    CHECK_THAT(bench.experiment(2).saved().file, Catch::Contains("federated 1.5 0.25"));
    CHECK_FALSE(std::holds_alternative<OpenRound>(bench.last.jobs.front()));
}

TEST_CASE("the first round's bytes begin where the experiment does", "[statistics][bytes]") {
    MachineBench bench;
    bench.join(1s, "a");
    bench.submit(2s, bench_experiment("", "rounds = 1"));
    bench.step(3s, ModelMade{1, MachineBench::model(1, 0), 10, 1000, 2000});
    const auto finish = [&](Instant now, ExperimentId id, std::uint64_t up, std::uint64_t down) {
        const auto update = sha256("a" + std::to_string(id));
        const auto start = MachineBench::model(id, 0);
        const HeldUpdate held{id, 1, update, 10, 5, {}, start};
        bench.step(now, MessageReceived{bench.sessions.at("a"), Offer{{1, id, 1, 1}, held}});
        bench.step(now, UpdateAbsorbed{id, 1, 1, "a", update, {}, {}});
        bench.step(now, SnapshotWritten{id, 1, MachineBench::model(id, 1), 10, 1.0, up, down});
        return bench.experiment(id).records().back();
    };
    const auto first = finish(4s, 1, 1300, 2500);
    CHECK(first.bytes_up == 300);
    CHECK(first.bytes_down == 500);
    bench.submit(5s, bench_experiment("", "rounds = 1"));  // in the same process, after the first
    bench.step(6s, ModelMade{2, MachineBench::model(2, 0), 10, 1400, 2600});
    const auto second = finish(7s, 2, 1700, 3100);
    CHECK(second.bytes_up == 300);
    CHECK(second.bytes_down == 500);
}

}  // namespace causeway
