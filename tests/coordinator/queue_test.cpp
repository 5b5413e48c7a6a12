// The queue, priorities, and clients that several running experiments share.
#include <catch2/catch.hpp>

#include "bench.h"
#include "coordinator/decisions.h"
#include "coordinator/limits.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

std::string with_priority(int priority, const std::string& sync = "min_clients = 5") {
    return bench_experiment(sync, "rounds = 9\npriority = " + std::to_string(priority));
}

}  // namespace

TEST_CASE("the queue goes by priority, then first in, first out, and a list shows the places", "[queue]") {
    MachineBench bench;
    bench.join(1s, "a");
    for (const int priority : {0, 5, 0, 9, 5}) {
        REQUIRE_FALSE(bench.submit(2s, with_priority(priority)).error);
    }
    const auto listed = Json::parse(bench.ask(3s, "experiment.list", Json::object()).body);
    std::vector<std::int64_t> places;
    for (const auto& line : (*listed)["experiments"].items()) {
        places.push_back(line["place"].integer());
    }
    CHECK(places == std::vector<std::int64_t>{0, 2, 4, 1, 3});  // the first runs: nothing stood before it
    Names order;
    for (ExperimentId running : {1, 4, 2, 5, 3}) {
        CHECK(bench.state(running) == "starting");
        bench.ask(4s, "experiment.cancel", Json::object().set("experiment", running));
    }
}

TEST_CASE("two running experiments take turns with the clients that both need", "[queue]") {
    MachineBench bench({.federation = "f", .parallel = 2});
    bench.join(1s, "a");
    bench.join(1s, "b");
    bench.submit(2s, bench_experiment("min_clients = 2", "rounds = 4"));
    bench.submit(2s, bench_experiment("min_clients = 2", "rounds = 4"));
    bench.make_model(3s, 1);
    bench.make_model(3s, 2);
    for (std::uint32_t round = 1; round <= 4; ++round) {
        const auto at = 10s * round;
        for (const ExperimentId id : {1, 2}) {
            INFO("round " << round << " of " << id);
            CHECK(bench.cohort(id) == Names{"a", "b"});
            CHECK(bench.cohort(3 - id).empty());  // one assignment per client
            bench.finish_round(at + std::chrono::seconds(id), id);
            REQUIRE(bench.experiment(id).records().back().round == round);
        }
    }
    CHECK(bench.state(1) == "succeeded");
    CHECK(bench.state(2) == "succeeded");
}

TEST_CASE("an experiment that needs all clients is not starved by two that share them", "[queue]") {
    MachineBench bench({.federation = "f", .parallel = 3});
    bench.join(1s, "a");
    bench.join(1s, "b");
    bench.submit(2s, bench_experiment("cohort = 1", "rounds = 50"));
    bench.submit(2s, bench_experiment("cohort = 1", "rounds = 50"));
    bench.make_model(3s, 1);
    bench.make_model(3s, 2);
    REQUIRE(bench.cohort(1).size() == 1);
    REQUIRE(bench.cohort(2).size() == 1);
    bench.submit(4s, bench_experiment("min_clients = 2", "rounds = 2"));
    CHECK(bench.state(3) == "starting");
    bench.finish_round(5s, 1);
    CHECK(bench.cohort(1).empty());  // kept for the third, which waits
    bench.finish_round(6s, 2);
    bench.make_model(7s, 3);
    CHECK(bench.cohort(3).size() == 2);
    bench.finish_round(8s, 3);
    CHECK(bench.cohort(1).size() == 1);  // the earlier ones have waited since
    CHECK(bench.cohort(2).size() == 1);
}

TEST_CASE("clients at work elsewhere are there: a start timeout does not run against them", "[queue]") {
    MachineBench bench({.federation = "f", .parallel = 2});
    const auto a = bench.join(1s, "a");
    bench.submit(2s, bench_experiment("min_clients = 1", "rounds = 4"));
    bench.make_model(3s, 1);
    bench.submit(3s, bench_experiment("min_clients = 1\nstart_timeout = \"3s\"", "rounds = 4"));
    bench.make_model(4s, 2);
    bench.step(100s, Tick{});
    CHECK(bench.state(2) == "running");
    bench.step(101s, SessionClosed{a, "bye"});
    bench.step(104s, Tick{});
    CHECK(bench.state(2) == "failed");
    CHECK(bench.experiment(2).saved().reason == "insufficient clients 0/1");
}

TEST_CASE("an experiment is cancelled in every phase, for good, and its clients are told", "[queue]") {
    const std::string phase = GENERATE("queued", "waiting", "making", "open", "finishing", "paused", "between");
    MachineBench bench;
    const auto a = bench.join(1s, "a");
    ExperimentId id = 1;
    if (phase == "queued") {
        bench.submit(1s, bench_experiment("min_clients = 9"));
        id = 2;
    }
    bench.submit(2s, bench_experiment(phase == "waiting" ? "min_clients = 2" : "min_clients = 1"));
    if (phase == "open" || phase == "finishing" || phase == "between" || phase == "paused") {
        bench.make_model(3s, 1);
    }
    const auto update = sha256(std::string_view("u"));
    if (phase == "finishing" || phase == "paused") {
        bench.step(4s, MessageReceived{a, Offer{{1, 1, 1, 1}, {1, 1, update, 10, 5, {}, MachineBench::model(1, 0)}}});
        bench.step(4s, UpdateAbsorbed{1, 1, 1, "a", update, {}, {}});
    }
    if (phase == "paused") {
        bench.step(4s, JobFailed{1, 1, "finish_round", {ErrorKind::io, "disk_full", "no room"}});
        CHECK(bench.state(1) == "paused");
    }
    if (phase == "between") {
        bench.finish_round(4s, 1);
    }
    INFO(phase);
    CHECK_FALSE(bench.ask(5s, "experiment.cancel", Json::object().set("experiment", id)).error);
    CHECK(bench.state(id) == "cancelled");
    CHECK((sent<Ended>(bench.last, a) != nullptr) == (phase != "queued"));
    CHECK(bench.ask(5s, "experiment.cancel", Json::object().set("experiment", id)).error->code == "already_over");
    // Whatever was under way answers into the void, and the next of the queue is not held up.
    bench.step(6s, ModelMade{id, update, 1});
    bench.step(6s, SnapshotWritten{id, 1, update, 1, 0, 0, 0});
    bench.step(6s, UpdateAbsorbed{id, 1, 1, "a", update, {}, {}});
    CHECK(bench.last.persist.empty());
    CHECK(bench.state(id) == "cancelled");
    bench.submit(7s, bench_experiment(""));
    CHECK((phase == "queued" || bench.state(id + 1) == "starting"));
}

TEST_CASE("who is there and does not take part stands in the log, with the reason", "[queue]") {
    MachineBench bench;
    for (const auto* node : {"a", "b", "c"}) {
        bench.join(1s, node);
    }
    bench.submit(2s, bench_experiment("cohort = 1\nselection = \"availability\"", "rounds = 4"));
    std::set<std::string> drawn;
    bench.make_model(3s, 1);
    for (std::uint32_t round = 1; round <= 3; ++round) {
        const SaveDecision* selection = nullptr;
        for (const auto& persist : bench.last.persist) {
            if (const auto* decision = std::get_if<SaveDecision>(&persist); decision && decision->kind == "selection") {
                selection = decision;
            }
        }
        REQUIRE(selection != nullptr);
        CHECK(selection->round == round);
        CHECK(selection->detail["there"].integer() == 3);
        CHECK(selection->detail["left_out"].fields().size() == 2);
        drawn.insert(bench.cohort(1).front());
        bench.finish_round(3s + 1s * round, 1);
    }
    CHECK(drawn.size() == 3);  // each in its turn
}

TEST_CASE("whose turn it is survives a restart", "[queue]") {
    Recovered recovered;
    RecoveredExperiment running;
    const auto file = bench_experiment("cohort = 1\nselection = \"availability\"", "rounds = 9");
    running.saved = {1, "test", file, "running", "", "admin"};
    running.add({0, MachineBench::model(1, 0), 10, Json::object(), {}});
    running.add({1, MachineBench::model(1, 1), 10, Json::object(), {}});
    running.last_drawn = {{"a", 1}, {"c", 2}};
    recovered.experiments = {running};
    MachineBench bench({}, recovered);
    for (const auto* node : {"c", "a", "b"}) {
        bench.join(1s, node);
    }
    CHECK(bench.cohort(1) == Names{"c"});  // the only one there when it looked
    bench.finish_round(2s, 1);
    CHECK(bench.cohort(1) == Names{"b"});  // never drawn
    bench.finish_round(3s, 1);
    CHECK(bench.cohort(1) == Names{"a"});
}

TEST_CASE("a client that joins while an experiment runs takes part from the next round", "[queue]") {
    MachineBench bench;
    bench.join(1s, "a");
    bench.submit(2s, bench_experiment("", "rounds = 3"));
    bench.make_model(3s, 1);
    const auto b = bench.join(4s, "b");
    CHECK(bench.cohort(1) == Names{"a"});
    CHECK(sent<Assign>(bench.last, b) == nullptr);
    bench.finish_round(5s, 1);
    CHECK(bench.cohort(1) == Names{"a", "b"});
    CHECK(sent<Assign>(bench.last, b) != nullptr);
}

TEST_CASE("a member whose heartbeats come and whose training does not move is dropped", "[queue]") {
    MachineBench bench;
    const auto a = bench.join(1s, "a");
    bench.join(1s, "b");
    bench.submit(2s, bench_experiment("quorum = 1\nstraggler_deadline = \"0s\"", "rounds = 2"));
    bench.make_model(3s, 1);
    const auto says = [&](Instant now, std::uint32_t step) {
        bench.step(now, MessageReceived{a, Progress{{1, 1, 1, 1}, step, 100, 1.0}});
    };
    says(3s, 0);
    bench.step(2000s, Tick{});  // it fetches a model over a slow link: nothing is known against it
    CHECK(persisted<SaveDecision>(bench.last) == nullptr);
    says(2000s, 1);
    bench.step(30000s, Tick{});  // a first step that took half an hour makes patient
    CHECK(persisted<SaveDecision>(bench.last) == nullptr);
    const auto limit = 2000s + limits::no_progress_pauses * 1997s;
    bench.step(limit - 1s, Tick{});
    says(limit - 1s, 1);  // saying the same again is no progress
    CHECK(persisted<SaveDecision>(bench.last) == nullptr);
    bench.step(limit, Tick{});
    REQUIRE(sent<Dropped>(bench.last, a) != nullptr);
    CHECK(sent<Dropped>(bench.last, a)->code == "no_progress");
    bench.step(limit, MessageReceived{a, Decline{{1, 1, 1, 1}, "dropped", "no_progress"}});
    const auto update = sha256(std::string_view("b1"));
    const auto session = bench.sessions.at("b");
    const HeldUpdate held{1, 1, update, 10, 5, {}, MachineBench::model(1, 0)};
    bench.step(limit, MessageReceived{session, Offer{{1, 1, 1, 1}, held}});
    bench.step(limit, UpdateAbsorbed{1, 1, 1, "b", update, {}, {}});
    bench.step(limit, SnapshotWritten{1, 1, MachineBench::model(1, 1), 10, 1.0, 0, 0});
    CHECK(bench.cohort(1) == Names{"b"});  // until it comes with a new session
}

TEST_CASE("nodes of another build take no part, and an experiment of another build waits", "[queue]") {
    Recovered recovered;
    MachineBench bench({.federation = "f", .parallel = 1, .model_path = {}, .models = {}, .build = "causeway 2"});
    Hello other;
    other.software = "causeway 1";
    bench.join(1s, "old", other);
    Hello same;
    same.software = "causeway 2";
    same.compute_signature = "causeway 2 cpu x";
    bench.submit(2s, bench_experiment("", "rounds = 2"));
    CHECK(bench.experiment(1).saved().build == "causeway 2");
    CHECK(bench.state(1) == "starting");
    bench.join(3s, "new", same);
    bench.make_model(4s, 1);
    CHECK(bench.cohort(1) == Names{"new"});
    bool logged = false;
    for (const auto& persist : bench.last.persist) {
        const auto* decision = std::get_if<SaveDecision>(&persist);
        logged = logged || (decision && decision->kind == "compute" &&
                            decision->detail["signature"].text() == "causeway 2 cpu x");
    }
    CHECK(logged);

    RecoveredExperiment running;
    running.saved = {1, "test", bench_experiment("", "rounds = 9"), "running", "", "admin", 0, 0, "causeway 1"};
    running.add({0, MachineBench::model(1, 0), 10, Json::object(), {}});
    running.next_cohort = {"a"};
    recovered.experiments = {running};
    MachineBench upgraded({.federation = "f", .parallel = 1, .model_path = {}, .models = {}, .build = "causeway 2"},
                          recovered);
    CHECK(upgraded.state(1) == "paused");
    CHECK_THAT(upgraded.experiment(1).saved().reason, Catch::Contains("causeway 1") && Catch::Contains("resume 1"));
    CHECK(upgraded.last.persist.empty());
    const auto update = sha256(std::string_view("u"));
    Hello holds = same;
    holds.held = {{1, 1, update, 10, 5, {}, MachineBench::model(1, 0)}};
    const auto a = upgraded.join(1s, "a", holds);
    CHECK(sent<Committed>(upgraded.last, a) == nullptr);  // the old build may still count it
    upgraded.submit(2s, bench_experiment(""));
    CHECK(upgraded.state(2) == "starting");  // it keeps nobody from running
    CHECK_FALSE(upgraded.ask(3s, "experiment.cancel", Json::object().set("experiment", 1)).error);
    CHECK_FALSE(upgraded.ask(3s, "experiment.resume", Json::object().set("experiment", 1)).error);
}

TEST_CASE("a node that was away hears at its hello which experiments are over", "[queue]") {
    MachineBench bench;
    const auto a = bench.join(1s, "a");
    bench.submit(2s, bench_experiment("", "rounds = 2"));
    bench.step(3s, SessionClosed{a, "bye"});
    bench.ask(4s, "experiment.cancel", Json::object().set("experiment", 1));
    Hello keeps;
    keeps.experiments = {1, 77};
    const auto again = bench.join(5s, "a", keeps);
    std::set<std::uint64_t> ended;
    for (const auto& send : bench.last.send) {
        if (const auto* end = std::get_if<Ended>(&send.message); end && send.session == again) {
            ended.insert(end->experiment);
        }
    }
    CHECK(ended == std::set<std::uint64_t>{1, 77});
}

}  // namespace causeway
