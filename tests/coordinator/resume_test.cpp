// Going on from the last commit of an experiment that is over: what is kept, what may change, what is refused.
#include <catch2/catch.hpp>

#include "bench.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;

Json about(ExperimentId id) {
    return Json::object().set("experiment", id);
}

Json with_set(ExperimentId id, const std::string& set) {
    auto body = about(id);
    return body.set("set", Json::array().push(set));
}

/// Two of five rounds, then cancelled.
void run_and_cancel(MachineBench& bench) {
    bench.join(1s, "a");
    bench.submit(2s, bench_experiment("", "rounds = 5"));
    bench.make_model(3s, 1);
    bench.finish_round(4s, 1);
    bench.finish_round(5s, 1);
    bench.ask(6s, "experiment.cancel", about(1));
}

}  // namespace

TEST_CASE("a resumed experiment goes on with its parent's model, round number and clients' state", "[resume]") {
    MachineBench bench;
    run_and_cancel(bench);
    const auto reply = bench.ask(7s, "experiment.resume", about(1));
    REQUIRE_FALSE(reply.error);
    CHECK(Json::parse(reply.body)->operator[]("parent_round").integer() == 2);
    const auto* saved = persisted<SaveExperiment>(bench.last);
    REQUIRE(saved != nullptr);
    CHECK(saved->parent == 1);
    CHECK(saved->parent_round == 2);
    REQUIRE(bench.last.jobs.size() == 1);
    CHECK(std::get<MakeModel>(bench.last.jobs[0]).from == MachineBench::model(1, 2));
    bench.step(8s, ModelMade{2, MachineBench::model(1, 2), 10});
    const auto* commit = persisted<SaveCommit>(bench.last);
    REQUIRE(commit != nullptr);
    CHECK(commit->round == 2);
    const auto* assign = sent<Assign>(bench.last, bench.sessions.at("a"));
    REQUIRE(assign != nullptr);
    CHECK(assign->lease.round == 3);
    CHECK(assign->continues == std::vector<std::uint64_t>{1});
    for (int i = 0; i < 3; ++i) {
        bench.finish_round(9s + 1s * i, 2);
        if (i == 0) {
            CHECK((*bench.experiment(2).event(0))["round"].integer() == 3);
        }
    }
    CHECK(bench.state(2) == "succeeded");
    CHECK(bench.experiment(2).records().back().round == 5);
    CHECK(bench.experiment(2).event_count() == 4);  // rounds 3 to 5, done
    CHECK(bench.experiment(2).first_event_round() == 3);
    const auto status = Json::parse(bench.ask(20s, "experiment.status", about(2)).body);
    CHECK((*status)["parent"].integer() == 1);
    CHECK((*status)["parent_round"].integer() == 2);
    // And from there with more rounds, whose clients may have state of either.
    auto more = about(2);
    REQUIRE_FALSE(bench.ask(21s, "experiment.resume", more.set("rounds", 6)).error);
    bench.step(22s, ModelMade{3, MachineBench::model(2, 5), 10});
    assign = sent<Assign>(bench.last, bench.sessions.at("a"));
    REQUIRE(assign != nullptr);
    CHECK(assign->lease.round == 6);
    CHECK(assign->continues == std::vector<std::uint64_t>{2, 1});
}

TEST_CASE("what cannot be resumed, and what cannot change, is refused with the reason", "[resume]") {
    MachineBench bench;
    run_and_cancel(bench);
    const auto code = [&](const Json& body) {
        const auto reply = bench.ask(7s, "experiment.resume", body);
        return reply.error ? reply.error->code : "";
    };
    CHECK(code(about(9)) == "unknown_experiment");
    CHECK(code(with_set(1, "model.layers=[\"flatten\", \"dense 20\", \"dense 10\"]")) == "cannot_change");
    CHECK(code(with_set(1, "data.shape=[64]")) == "cannot_change");
    CHECK(code(with_set(1, "model.init_from=\"other\"")) == "cannot_change");
    CHECK(code(with_set(1, "train.btach=3")) == "bad_configuration");
    auto fewer = about(1);
    CHECK(code(fewer.set("rounds", 2)) == "no_rounds_left");
    CHECK(code(with_set(1, "train.optimizer.learning_rate=0.5")) == "");
    CHECK(code(about(2)) == "not_over");
    bench.ask(8s, "experiment.cancel", about(2));
    CHECK(code(about(2)) == "nothing_committed");
}

TEST_CASE("a restart goes on with a resumed experiment, before and after its first commit", "[resume]") {
    const bool committed = GENERATE(false, true);
    Recovered recovered;
    RecoveredExperiment parent;
    parent.saved = {1, "test", bench_experiment("", "rounds = 5"), "cancelled", "", "admin"};
    for (std::uint32_t round = 0; round <= 2; ++round) {
        parent.add({round, MachineBench::model(1, round), 10, Json::object(), {}});
    }
    RecoveredExperiment child;
    const auto* state = committed ? "running" : "starting";
    child.saved = {2, "test", bench_experiment("", "rounds = 5"), state, "", "admin", 1, 2};
    if (committed) {
        child.add({2, MachineBench::model(1, 2), 10, Json::object(), {}});
        child.next_cohort = {"a"};
    }
    recovered.experiments = {parent, child};
    MachineBench bench({}, recovered);
    bench.join(1s, "a");
    if (!committed) {
        REQUIRE(bench.last.jobs.size() == 1);
        CHECK(std::get<MakeModel>(bench.last.jobs[0]).from == MachineBench::model(1, 2));
        bench.step(2s, ModelMade{2, MachineBench::model(1, 2), 10});
    }
    const auto* assign = sent<Assign>(bench.last, bench.sessions.at("a"));
    REQUIRE(assign != nullptr);
    CHECK(assign->lease.round == 3);
    CHECK(assign->continues == std::vector<std::uint64_t>{1});
    CHECK(bench.ask(3s, "model.where", Json::object().set("experiment", 2).set("round", 1)).error->code ==
          "unknown_round");
}

TEST_CASE("a resumed experiment without its parent's commit fails, and says why", "[resume]") {
    Recovered recovered;
    RecoveredExperiment child;
    child.saved = {2, "test", bench_experiment("", "rounds = 5"), "starting", "", "admin", 1, 2};
    recovered.experiments = {child};
    MachineBench bench({}, recovered);
    CHECK(bench.state(2) == "failed");
    CHECK_THAT(bench.experiment(2).saved().reason, Catch::Contains("goes on from"));
}

}  // namespace causeway
