// What a machine keeps of its rounds does not grow with them, and nobody who asks gets another answer for it.
#include "coordinator/round_history.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "bench.h"
#include "coordinator/limits.h"
#include "coordinator/store.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;

/// All that may be kept: the last ones, those that wait for their evaluation, the first and the best.
constexpr std::size_t bound = limits::rounds_kept + limits::evaluations_behind + 2;

RoundRecord record(std::uint32_t round, double loss = std::nan("")) {
    RoundRecord record{.round = round, .model = sha256(std::to_string(round)), .seconds = 0.1};
    record.bytes_up = 10;
    if (!std::isnan(loss)) {
        record.evaluation = ModelEvaluated{1, round, loss, 1 - loss, 10};
    }
    return record;
}

std::string evaluated_experiment(std::uint32_t rounds) {
    auto file = bench_experiment("", "rounds = " + std::to_string(rounds));
    return file.replace(file.find("\"none\""), 6, "\"coordinator\"");
}

std::vector<std::string> texts(const std::vector<Json>& all) {
    std::vector<std::string> lines;
    for (const auto& one : all) {
        lines.push_back(one.dump());
    }
    return lines;
}

/// One client, one watcher, and everything that a store would have.
struct LongRun : MachineBench {
    using MachineBench::MachineBench;
    std::vector<StoredRound> stored;
    std::vector<Json> told;

    void note() {
        for (const auto& persist : last.persist) {
            if (const auto* commit = std::get_if<SaveCommit>(&persist)) {
                stored.push_back({commit->round, commit->model, commit->model_bytes, commit->summary, std::nullopt});
            } else if (const auto* evaluation = std::get_if<SaveEvaluation>(&persist)) {
                stored.at(evaluation->round).evaluation = *evaluation;
            }
        }
        for (const auto& send : last.send) {
            if (const auto* reply = std::get_if<Reply>(&send.message); reply != nullptr && reply->id == 4) {
                told.push_back(*Json::parse(reply->body));
            }
        }
    }
    void begin(const std::string& file) {
        join(1s, "a");
        submit(1s, file);
        make_model(1s, 1);
        note();
        watch(0);
    }
    void watch(std::uint32_t from) {
        const auto session = next++;
        step(2s, SessionOpened{session, "admin", "operator", Hello{}});
        const auto body = Json::object().set("experiment", 1).set("from", from);
        step(2s, MessageReceived{session, Request{4, "experiment.watch", body.dump()}});
        note();
    }
    /// What somebody is told who begins to look now.
    std::vector<Json> watch_again(std::uint32_t from = 0) {
        told.clear();
        watch(from);
        while (answer_reads(3s, stored) || last.wake_at != never) {
            note();
            if (last.wake_at != never && last.jobs.empty()) {
                step(3s, Tick{});
                note();
            }
        }
        return told;
    }
};

}  // namespace

TEST_CASE("five thousand rounds leave as much in memory as fifty, and whoever asks is told each of them",
          "[machine][history]") {
    constexpr std::uint32_t rounds = 5000;
    LongRun run;
    run.begin(evaluated_experiment(rounds));
    for (std::uint32_t round = 1; round <= rounds; ++round) {
        run.finish_round(2s, 1);
        run.note();
        if (round % 10 == 3) {
            run.step(2s, JobFailed{1, round, "evaluate", {ErrorKind::not_found, "no_holdout", "nothing held out"}});
        } else {
            run.step(2s, ModelEvaluated{1, round, 1.0 / (1 + round % 777), 0.5, 10, Json::object()});
        }
        run.note();
        REQUIRE(run.experiment(1).records().kept() <= bound);
    }
    CHECK(run.state(1) == "succeeded");
    CHECK(run.experiment(1).records().kept() <= 4);  // over: the first, the last, the best
    const auto live = run.told;
    REQUIRE(live.size() == rounds + 1);
    CHECK(live[2]["accuracy_note"].text() == "nothing held out");
    CHECK(live.back()["best_round"].integer() == 776);

    CHECK((texts(run.watch_again()) == texts(live)));
    CHECK(texts(run.watch_again(rounds - 2)) == texts({live.end() - 4, live.end()}));
    CHECK(run.ask(3s, "model.where", Json::object().set("experiment", 1).set("round", 7)).id == 0);  // not at once
    const auto asker = run.next - 1;
    REQUIRE(run.answer_reads(3s, run.stored));
    const auto* reply = sent<Reply>(run.last, asker);
    REQUIRE(reply != nullptr);
    CHECK((*Json::parse(reply->body))["model_sha256"].text() == MachineBench::model(1, 7).hex());

    Recovered recovered{2, {}, {}};
    recovered.experiments.push_back({.saved = run.experiment(1).saved()});
    for (const auto& round : run.stored) {
        recovered.experiments[0].add(round);
    }
    LongRun again({}, recovered);
    again.stored = run.stored;
    CHECK(again.experiment(1).records().kept() <= 4);
    CHECK((texts(again.watch_again()) == texts(live)));
}

TEST_CASE("rounds that find too many waiting for their evaluations are left without, but for the last one",
          "[history]") {
    constexpr std::uint32_t behind = limits::evaluations_behind;
    LongRun run;
    run.begin(evaluated_experiment(200));
    for (std::uint32_t round = 1; round <= 150; ++round) {
        run.finish_round(2s, 1);
        run.note();
        REQUIRE(run.experiment(1).records().kept() <= bound);
    }
    CHECK(run.told.empty());  // the first waits for its evaluation, and all wait for the first
    for (std::uint32_t round = 1; round <= behind; ++round) {
        run.step(2s, ModelEvaluated{1, round, 0.5, 0.5, 10, Json::object()});
        run.note();
        while (run.answer_reads(2s, run.stored)) {
            run.note();
        }
    }
    for (std::size_t before = 0; before != run.told.size();) {  // a page of the store at each turn
        before = run.told.size();
        run.step(2s, Tick{});
        do {
            run.note();
        } while (run.answer_reads(2s, run.stored));
    }
    REQUIRE(run.told.size() == 150);
    CHECK(run.told[behind - 1]["accuracy"].number() == 0.5);
    CHECK_THAT(run.told[behind]["accuracy_note"].text(), Catch::Contains("32 rounds before it wait"));
    run.step(2s, ModelEvaluated{1, behind + 1, 0.1, 0.9, 10, Json::object()});  // nobody asked for it
    CHECK(run.last.persist.empty());
    CHECK(run.experiment(1).best()->round == 1);
    for (std::uint32_t round = 151; round <= 200; ++round) {
        run.finish_round(2s, 1);
        run.note();
    }
    CHECK(run.experiment(1).saved().state == "running");
    run.step(2s, ModelEvaluated{1, 200, 0.1, 0.9, 10, Json::object()});
    CHECK(run.experiment(1).saved().state == "succeeded");
    CHECK(run.experiment(1).best()->round == 200);
}

TEST_CASE("a page that the store cannot give ends the watch with the reason", "[history]") {
    Recovered recovered{2, {}, {}};
    recovered.experiments.push_back(
        {.saved = {1, "test", bench_experiment("", "rounds = 200"), "cancelled", "", "admin"}});
    for (std::uint32_t round = 0; round <= 100; ++round) {
        recovered.experiments[0].add({round, MachineBench::model(1, round), 10, Json::object(), {}});
    }
    LongRun run({}, recovered);
    run.watch(1);
    const auto session = run.next - 1;
    REQUIRE(run.last.jobs.size() == 1);
    const auto asked = std::get<ReadRounds>(run.last.jobs[0]);
    CHECK(asked.from == 1);
    CHECK(asked.count == limits::events_per_step);
    run.watch(1);  // another one at the same place shares the page
    CHECK(run.last.jobs.empty());
    RoundsRead broken{1, 1, {}, Error{ErrorKind::io, "disk_full", "no room"}};
    SECTION("an error") {}
    SECTION("nothing there") {
        broken.error.reset();
    }
    run.step(3s, broken);
    for (const auto who : {session, session + 1}) {
        const auto* reply = sent<Reply>(run.last, who);
        REQUIRE(reply != nullptr);
        CHECK(reply->last);
        CHECK(reply->error->code == (broken.error ? "disk_full" : "database_corrupt"));
    }
    run.step(3s, Tick{});
    CHECK(run.last.jobs.empty());
}

TEST_CASE("a history keeps the first, the last, the best and what is awaited", "[unit][history]") {
    RoundHistory history;
    CHECK(history.empty());
    CHECK_FALSE(history.committed(0));
    double seconds = 0;
    for (std::uint32_t round = 5; round <= 1000; ++round) {
        history.add(record(round, round % 100 == 50 ? (round == 450 ? 0.1 : 0.2) : std::nan("")));
        seconds += 0.1;
        if (round == 700) {
            history.await_evaluation(round);
        }
    }
    CHECK(history.front().round == 5);
    CHECK(history.back().round == 1000);
    CHECK(history.find(5) != nullptr);
    CHECK(history.find(6) == nullptr);
    CHECK(history.committed(6));
    CHECK_FALSE(history.committed(4));
    CHECK_FALSE(history.committed(1001));
    REQUIRE(history.find(1001 - limits::rounds_kept) != nullptr);
    CHECK(history.find(1000 - limits::rounds_kept) == nullptr);
    CHECK(history.totals().seconds == seconds);
    CHECK(history.totals().bytes_up == 9960);
    CHECK(history.best("loss")->round == 450);
    CHECK(history.best("accuracy")->round == 450);
    history.judge_by("loss");
    CHECK(history.best("accuracy") == nullptr);
    REQUIRE(history.find(700) != nullptr);
    history.settle(record(700, 0.1));  // as good, and later
    CHECK(history.find(700) == nullptr);
    CHECK(history.best("loss")->round == 450);
    history.settle(record(1000, 0.05));
    CHECK(history.best("loss")->round == 1000);
    CHECK(history.back().evaluation->loss == 0.05);
    CHECK_FALSE(history.has_gaps());
    history.add(record(1002));
    CHECK(history.has_gaps());
}

TEST_CASE("a round whose metric was not measured is never the best one", "[unit][history]") {
    RoundHistory history;
    auto unmeasured = record(1, 0.1);
    unmeasured.evaluation->accuracy = std::nan("");
    history.add(unmeasured);
    CHECK(history.best("accuracy") == nullptr);
    CHECK(history.best("auc") == nullptr);
    CHECK(history.best("loss")->round == 1);
    history.add(record(2, 0.9));
    CHECK(history.best("accuracy")->round == 2);
}

TEST_CASE("a store gives rounds by pages, with what was measured and why something was not", "[store][history]") {
    const TemporaryFolder folder;
    auto store = *Store::open(folder.path, {});
    std::vector<Persist> steps{SaveExperiment{1, "test", "[experiment]\n", "running", "", "operator"},
                               SaveExperiment{2, "other", "[experiment]\n", "running", "", "operator"}};
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    for (std::uint32_t round = 0; round < 300; ++round) {
        const auto model = sha256(std::to_string(round));
        auto summary = Json::object().set("seconds", 0.1).set("member_times", Json::object().set("ann", 1));
        steps.emplace_back(SaveCommit{1, round, model, 5, {}, {"ann"}, summary});
        steps.emplace_back(SaveCommit{2, round, model, 5, {}, {"bob"}, summary});
        if (round == 7) {
            steps.emplace_back(SaveEvaluation{1, 7, 0.5, 0.75, 9, Json::object().set("note", "without bob"), 0.75});
        } else if (round == 8) {
            steps.emplace_back(SaveEvaluation{1, 8, none, none, 0, Json::object().set("note", "why"), none});
        }
    }
    REQUIRE(store.execute(steps));
    const auto page = *store.rounds(1, 6, 4);
    REQUIRE(page.size() == 4);
    CHECK(page[0].round == 6);
    CHECK(page[3].model == sha256(std::string_view("9")));
    CHECK_FALSE(page[0].summary.has("member_times"));
    CHECK_FALSE(page[0].evaluation.has_value());
    CHECK(record_of(page[1]).evaluation->accuracy == 0.75);
    CHECK(record_of(page[1]).evaluation_note == "without bob");
    CHECK_FALSE(record_of(page[2]).evaluation.has_value());
    CHECK(record_of(page[2]).evaluation_note == "why");
    CHECK(store.rounds(1, 298, 100)->size() == 2);
    CHECK(store.rounds(1, 300, 100)->empty());
    CHECK(store.rounds(3, 0, 100)->empty());
    CHECK(store.named_models(1)->size() == 2);  // the last and the one that was measured

    const auto recovered = *store.load();
    for (const auto& experiment : recovered.experiments) {
        CHECK(experiment.rounds.back().round == 299);
        CHECK(experiment.rounds.kept() <= bound + 6);  // the best by each figure, until the experiment's is known
        CHECK(experiment.next_cohort == std::vector<std::string>{experiment.saved.experiment == 1 ? "ann" : "bob"});
    }
    CHECK(recovered.experiments[0].rounds.best("accuracy")->round == 7);
    CHECK(recovered.experiments[1].rounds.best("accuracy") == nullptr);
}

}  // namespace causeway
