// The store: what a step persisted is there after a kill at any instruction, all of it or nothing; history is final.
#include "coordinator/store.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "coordinator/audit_store.h"
#include "coordinator/schema.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

/// This build's formats and one more.
std::vector<const char*> and_then(const char* next) {
    std::vector<const char*> migrations(store_migrations().begin(), store_migrations().end());
    migrations.push_back(next);
    return migrations;
}

constexpr ExperimentId id = 3;

Store open_store(const TemporaryFolder& folder, StoreOptions options = {}) {
    auto store = Store::open(folder.path, options);
    REQUIRE(store);
    return *std::move(store);
}

SaveExperiment stored_experiment(std::string state, std::string reason = "") {
    return {id, "digits", "[experiment]\nname = \"digits\"\n", std::move(state), std::move(reason), "operator"};
}

Digest stored_model_of(std::uint32_t round) {
    return sha256("model " + std::to_string(round));
}
Digest update_of(const std::string& node, std::uint32_t round) {
    return sha256(node + std::to_string(round));
}

SaveCommit stored_commit(std::uint32_t round) {
    SaveCommit stored_commit{id, round,          stored_model_of(round),         1000 + round,
                             {}, {"ann", "bob"}, Json::object().set("loss", 0.5)};
    if (round > 0) {
        stored_commit.participants = {{"ann", update_of("ann", round)}, {"bob", update_of("bob", round)}};
    }
    return stored_commit;
}

SaveDecision stored_decision(std::uint32_t round, const std::string& kind) {
    return {id, round, kind, Json::object().set("node", "ann").set("attempt", 2)};
}

Status run(Store& store, std::vector<Persist> persists) {
    return store.execute(persists);
}

void commit_stored_rounds(Store& store, std::uint32_t last) {
    REQUIRE(run(store, {stored_experiment("running")}));
    for (std::uint32_t round = 0; round <= last; ++round) {
        REQUIRE(run(store, {stored_commit(round)}));
    }
}

RecoveredExperiment recovered(Store& store) {
    const auto all = store.load();
    REQUIRE(all);
    REQUIRE(all->experiments.size() == 1);
    return all->experiments[0];
}

}  // namespace

TEST_CASE("the epoch rises at each start, and nothing else changes", "[unit][store]") {
    const TemporaryFolder folder;
    for (std::uint64_t start = 1; start <= 5; ++start) {
        auto store = open_store(folder);
        CHECK(store.epoch() == start);
        CHECK(store.load()->epoch == start);
        CHECK(store.load()->experiments.empty());
    }
}

TEST_CASE("everything that was persisted comes back after a restart", "[unit][store]") {
    const TemporaryFolder folder;
    {
        auto store = open_store(folder);
        REQUIRE(run(store, {stored_experiment("queued"), stored_decision(0, "cohort")}));
        REQUIRE(run(store, {stored_experiment("running"), stored_commit(0), SaveEvaluation{id, 0, 2.3, 0.1, 360}}));
        REQUIRE(run(store, {stored_decision(1, "attempt"), stored_decision(1, "dropped"), stored_commit(1)}));
        REQUIRE(run(store, {stored_decision(2, "refused"), stored_decision(2, "attempt")}));
        REQUIRE(run(store, {SaveEvaluation{id, 1, std::numeric_limits<double>::quiet_NaN(), 0.2, 360}}));
    }
    auto store = open_store(folder);
    const auto back = recovered(store);
    CHECK(back.saved.name == "digits");
    CHECK(back.saved.file == stored_experiment("").file);
    CHECK(back.saved.state == "running");
    CHECK(back.saved.submitted_by == "operator");
    REQUIRE(back.rounds.back().round == 1);
    CHECK(back.rounds.back().model == stored_model_of(1));
    CHECK(back.rounds.back().model_bytes == 1001);
    CHECK(back.rounds.back().loss == 0.5);
    CHECK(back.rounds.front().evaluation->accuracy == 0.1);
    CHECK(std::isnan(back.rounds.back().evaluation->loss));
    CHECK(back.next_cohort == std::vector<std::string>{"ann", "bob"});
    CHECK(back.last_counted.at("bob") == std::pair(1u, update_of("bob", 1)));
    REQUIRE(back.decisions.size() == 2);  // of the open round only
    CHECK(back.decisions[0].kind == "refused");
    CHECK(back.decisions[1].detail["attempt"].integer() == 2);
}

TEST_CASE("per node the latest counted update is known", "[unit][store]") {
    const TemporaryFolder folder;
    auto store = open_store(folder);
    commit_stored_rounds(store, 3);
    auto without_bob = stored_commit(4);
    without_bob.participants.pop_back();
    REQUIRE(run(store, {without_bob}));
    const auto back = recovered(store);
    CHECK(back.last_counted.at("ann").first == 4);
    CHECK(back.last_counted.at("bob").first == 3);
}

TEST_CASE("what a node declared last is known, for ever", "[unit][store]") {
    const TemporaryFolder folder;
    const std::vector<DatasetDeclaration> first{{"digits", sha256("d"), 100, {8, 8, 1}, 10}, {"text", {}, 5, {}, 0}};
    const std::vector<DatasetDeclaration> second{{"digits", sha256("e"), 90, {64}, 10}};
    {
        auto store = open_store(folder);
        REQUIRE(run(store, {SaveDeclaration{"ann", first}, SaveDeclaration{"bob", first}}));
        REQUIRE(run(store, {SaveDeclaration{"ann", second}}));
    }
    auto store = open_store(folder);
    const auto declared = store.load()->declared;
    CHECK(declared.at("ann") == second);
    CHECK(declared.at("bob") == first);
}

TEST_CASE("a step is persisted whole or not at all", "[unit][store]") {
    const TemporaryFolder folder;
    auto store = open_store(folder);
    commit_stored_rounds(store, 1);
    auto conflicting = stored_commit(1);
    conflicting.model = sha256("another");
    const auto status = run(store, {stored_decision(2, "dropped"), stored_experiment("paused"), conflicting});
    REQUIRE_FALSE(status);
    CHECK(status.error().code == "commit_conflict");
    CHECK(recovered(store).decisions.empty());
    CHECK(recovered(store).saved.state == "running");
}

TEST_CASE("a committed round is never redone: repeating it changes nothing, another model is refused",
          "[unit][store]") {
    const TemporaryFolder folder;
    auto store = open_store(folder);
    commit_stored_rounds(store, 2);
    CHECK(run(store, {stored_commit(2)}));
    CHECK(recovered(store).rounds.back().round == 2);
    CHECK(run(store, {stored_commit(4)}).error().code == "commit_conflict");  // round 3 is missing
    auto other = stored_commit(0);
    other.model = sha256("another");
    CHECK(run(store, {other}).error().code == "commit_conflict");
}

TEST_CASE("terminal states absorb", "[unit][store]") {
    for (const std::string end : {"succeeded", "failed", "cancelled"}) {
        for (const std::string later : {"queued", "running", "paused", "succeeded", "failed", "cancelled"}) {
            const TemporaryFolder folder;
            auto store = open_store(folder);
            REQUIRE(run(store, {stored_experiment("running"), stored_experiment(end, "why")}));
            const auto status = run(store, {stored_experiment(later)});
            CHECK(status.has_value() == (later == end));
            CHECK((status || status.error().code == "terminal_state"));
            CHECK(recovered(store).saved.state == end);
        }
    }
}

TEST_CASE("kill -9 at any moment: what was acknowledged is there, nothing is half there", "[store][crash][property]") {
    const unsigned seed = 11;
    CAPTURE(seed);
    std::mt19937 random(seed);
    for (int trial = 0; trial < 10; ++trial) {
        const TemporaryFolder folder;
        const int steps = 1 + static_cast<int>(random() % 40);
        CAPTURE(trial, steps);
        kill_after(steps, [&](const auto& finished) {
            auto store = *Store::open(folder.path);
            (void)store.execute(std::vector<Persist>{stored_experiment("running")});
            finished();
            for (std::uint32_t round = 0; round < 200; ++round) {
                (void)store.execute(std::vector<Persist>{stored_decision(round, "attempt"), stored_commit(round)});
                finished();
            }
        });
        auto store = open_store(folder);
        CHECK(store.epoch() == 2);
        const auto back = recovered(store);
        const auto rounds = *store.rounds(id, 0, 1000);
        REQUIRE(rounds.size() + 1 >= static_cast<std::size_t>(steps));
        for (std::uint32_t round = 0; round < rounds.size(); ++round) {
            REQUIRE(rounds[round].round == round);
            REQUIRE(rounds[round].model == stored_model_of(round));
        }
        if (rounds.size() > 1) {
            REQUIRE(back.rounds.back().model == rounds.back().model);
            REQUIRE(back.last_counted.at("bob").first == rounds.size() - 1);
        }
        REQUIRE(back.decisions.empty());  // a decision came with its commit, or not at all
    }
}

TEST_CASE("a second store on the same folder is refused while the first lives", "[unit][store]") {
    const TemporaryFolder folder;
    {
        auto first = open_store(folder);
        const auto second = Store::open(folder.path);
        REQUIRE_FALSE(second);
        CHECK(second.error().kind == ErrorKind::refused);
        CHECK(second.error().code == "state_in_use");
        CHECK(run(first, {stored_experiment("queued")}));  // undisturbed
    }
    CHECK(open_store(folder).epoch() == 2);
}

TEST_CASE("a full disk fails the step with disk_full; with room the same step succeeds", "[unit][store]") {
    const TemporaryFolder folder;
    { open_store(folder); }
    auto large = stored_experiment("queued");
    large.file = std::string(400'000, 'x');
    {
        auto store = open_store(folder, {{60}, {}});
        REQUIRE(run(store, {SaveDeclaration{"ann", {}}}));
        const auto status = run(store, {SaveDeclaration{"ann", {{"digits", {}, 1, {}, 0}}}, large});
        REQUIRE_FALSE(status);
        CHECK(status.error().kind == ErrorKind::io);
        CHECK(status.error().code == "disk_full");
        CHECK(store.load()->experiments.empty());
        CHECK(store.load()->declared.empty());
    }
    auto store = open_store(folder);
    CHECK(run(store, {large}));
    CHECK(recovered(store).saved.file == large.file);
}

TEST_CASE("a newer format is refused, an older one is migrated after a copy", "[unit][store]") {
    const TemporaryFolder folder;
    {
        auto store = open_store(folder);
        commit_stored_rounds(store, 1);
    }
    const auto next = and_then("CREATE TABLE later (x); UPDATE experiments SET reason = 'migrated';");
    const auto present = "coordinator.db.format-" + std::to_string(store_migrations().size());
    {
        auto store = open_store(folder, {{}, next});
        CHECK(recovered(store).saved.reason == "migrated");
        CHECK(recovered(store).rounds.back().round == 1);
        CHECK(std::filesystem::exists(folder.path / present));
    }
    const auto older_build = Store::open(folder.path);
    REQUIRE_FALSE(older_build);
    CHECK(older_build.error().kind == ErrorKind::unsupported);
    CHECK(older_build.error().code == "newer_format");
    const TemporaryFolder restored;  // the copy is a whole store of the old format
    std::filesystem::copy_file(folder.path / present, restored.path / "coordinator.db");
    auto store = open_store(restored);
    CHECK(recovered(store).saved.reason.empty());
}

TEST_CASE("a store of the first format opens, and its evaluations are as they were", "[unit][store]") {
    const TemporaryFolder folder;
    {
        auto database = Database::open(folder.path / "coordinator.db", {});
        REQUIRE(database);
        REQUIRE(database->run_script(store_migrations()[0]));
        REQUIRE(database->run_script("PRAGMA user_version=1"));
        REQUIRE(
            database->run_script("INSERT INTO experiments VALUES (1, 'old', 'text', 'running', '', 'operator');"
                                 "INSERT INTO commits VALUES (1, 0, zeroblob(32), 10, '[]', '{}');"
                                 "INSERT INTO evaluations VALUES (1, 0, 0.5, 0.75, 8);"));
    }
    auto store = open_store(folder);
    const auto recovered = *store.load();
    const auto& evaluation = recovered.experiments.at(0).rounds.front().evaluation;
    REQUIRE(evaluation);
    CHECK(evaluation->accuracy == 0.75);
    CHECK(evaluation->detail.fields().empty());
}

TEST_CASE("a migration that fails leaves the old format", "[unit][store]") {
    const TemporaryFolder folder;
    {
        auto store = open_store(folder);
        commit_stored_rounds(store, 0);
    }
    const auto broken = and_then("UPDATE experiments SET reason = 'half'; SELECT nonsense;");
    REQUIRE_FALSE(Store::open(folder.path, {{}, broken}));
    auto store = open_store(folder);
    CHECK(recovered(store).saved.reason.empty());
}

TEST_CASE("a file that is no database is named as damaged", "[unit][store]") {
    const TemporaryFolder folder;
    std::ofstream(folder.path / "coordinator.db") << std::string(8192, 'x');
    const auto store = Store::open(folder.path);
    REQUIRE_FALSE(store);
    CHECK(store.error().kind == ErrorKind::corrupt);
}

TEST_CASE("flushes are counted: one a step", "[unit][store]") {
    const TemporaryFolder folder;
    auto store = open_store(folder);
    const auto before = store.flushes();
    commit_stored_rounds(store, 4);
    CHECK(store.flushes() == before + 6);
    REQUIRE(store.execute({}));
    CHECK(store.flushes() == before + 6);
}

TEST_CASE("the last commits, the best and the pinned models stay named", "[unit][store]") {
    const TemporaryFolder folder;
    auto store = open_store(folder);
    commit_stored_rounds(store, 9);
    for (std::uint32_t round = 0; round < 10; ++round) {
        const double accuracy = round == 4 || round == 6 ? 0.9 : 0.5;  // equal: the lower loss is the better
        // Round 2 is the best by loss; one that is not a number is never the best.
        const double loss = round == 0 ? std::nan("") : round == 2 ? 0.1 : round == 4 ? 0.2 : 0.3;
        REQUIRE(run(store, {SaveEvaluation{id, round, loss, accuracy, 10}}));
    }
    REQUIRE(store.pin_model(stored_model_of(1)));
    const auto named = *store.named_models(3);
    CHECK(named == std::set{stored_model_of(9), stored_model_of(8), stored_model_of(7), stored_model_of(4),
                            stored_model_of(2), stored_model_of(1)});
}

TEST_CASE("the best model by any other figure stays named, and its figures come back", "[unit][store]") {
    const TemporaryFolder folder;
    {
        auto store = open_store(folder);
        commit_stored_rounds(store, 9);
        for (std::uint32_t round = 0; round < 10; ++round) {
            const auto detail = Json::object().set("rmse", round == 3 ? 0.5 : 2.0);
            REQUIRE(run(store, {SaveEvaluation{id, round, round == 9 ? 0.1 : 0.3, std::nan(""), 10, detail,
                                               round == 3 ? -0.5 : -2.0}}));
        }
        CHECK(*store.named_models(1) == std::set{stored_model_of(9), stored_model_of(3)});
    }
    auto store = open_store(folder);
    const auto recovered = *store.load();
    const auto& rounds = recovered.experiments.at(0).rounds;
    CHECK(rounds.find(3)->evaluation->detail["rmse"].number() == 0.5);
    REQUIRE(rounds.best("rmse") != nullptr);
    CHECK(rounds.best("rmse")->round == 3);
    CHECK(rounds.best("loss")->round == 9);
}

TEST_CASE("whatever was measured in however many rounds of several experiments, the best of each stay named",
          "[unit][store][property]") {
    const std::uint64_t seed = 23;
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const TemporaryFolder folder;
    auto store = open_store(folder);
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    // Few values, so that many are equal; some are not measured.
    const auto figure = [&] { return random() % 5 == 0 ? nan : static_cast<double>(random() % 4); };
    const auto or_worst = [](double loss) { return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss; };
    std::set<Digest> expected;
    for (ExperimentId which = 1; which <= 6; ++which) {
        std::vector<Persist> history{stored_experiment("running")};
        std::get<SaveExperiment>(history[0]).experiment = which;
        const auto rounds = static_cast<std::uint32_t>(1 + random() % 40);
        const auto model = [&](std::uint32_t round) { return sha256(fmt::format("{} {}", which, round)); };
        using Rank = std::tuple<double, double, std::uint32_t>;  // the least is the best
        std::optional<Rank> by_accuracy, by_loss, by_worth;
        for (std::uint32_t round = 0; round < rounds; ++round) {
            history.emplace_back(SaveCommit{which, round, model(round), 1, {}, {}, Json::object()});
            const double loss = figure(), accuracy = figure(), worth = figure();
            if (round == 0 || random() % 3 == 0) {
                continue;
            }
            history.emplace_back(SaveEvaluation{.experiment = which,
                                                .round = round,
                                                .loss = loss,
                                                .accuracy = accuracy,
                                                .examples = 1,
                                                .worth = worth});
            const auto better = [](std::optional<Rank>& best, const Rank& rank) {
                best = best ? std::min(*best, rank) : rank;
            };
            if (!std::isnan(accuracy)) {
                better(by_accuracy, {-accuracy, or_worst(loss), round});
                better(by_loss, {or_worst(loss), -accuracy, round});
            }
            if (!std::isnan(worth)) {
                better(by_worth, {-worth, or_worst(loss), round});
            }
        }
        REQUIRE(run(store, history));
        for (const auto& best : {by_accuracy, by_loss, by_worth}) {
            if (best) {
                expected.insert(model(std::get<2>(*best)));
            }
        }
        for (std::uint32_t last = rounds - std::min(rounds, 2u); last < rounds; ++last) {
            expected.insert(model(last));
        }
    }
    CHECK(*store.named_models(2) == expected);
}

TEST_CASE("what each client's time went to stays in the store, and is not read at a start", "[unit][store]") {
    const TemporaryFolder folder;
    auto store = open_store(folder);
    auto first = stored_commit(0);
    first.summary.set("member_times", Json::object().set("ann", Json::object().set("train", 1.5))).set("clients", 2);
    REQUIRE(run(store, {stored_experiment("running"), first}));
    const auto back = store.rounds(id, 0, 1)->at(0).summary;
    CHECK(back["clients"].integer() == 2);
    CHECK(back["loss"].number() == 0.5);
    CHECK_FALSE(back.has("member_times"));
    auto kept = *store.database().prepare("SELECT json_extract(summary, '$.member_times.ann.train') FROM commits");
    REQUIRE(*kept.next());
    CHECK(kept.number(0) == 1.5);
}

TEST_CASE("neither a start nor a commit looks at all commits for each line of the log", "[unit][store]") {
    const TemporaryFolder folder;
    constexpr std::uint32_t rounds = 800;  // more than SQLite keeps in memory
    const auto heavy = [](std::uint32_t round) {
        auto made = stored_commit(round);
        made.summary.set("member_times", std::string(6000, 'x'));
        return made;
    };
    auto store = open_store(folder);
    std::vector<Persist> life{stored_experiment("running")};
    for (std::uint32_t round = 0; round < rounds; ++round) {
        life.emplace_back(heavy(round));
        life.emplace_back(stored_decision(round, "dropped"));
    }
    life.emplace_back(stored_decision(rounds, "next_attempt"));
    REQUIRE(run(store, std::move(life)));
    const auto all = std::filesystem::file_size(folder.path / "coordinator.db-wal");
    const auto read_so_far = [] {  // by this process, from files: a count, not a time
        std::ifstream file("/proc/self/io");
        std::string name;
        std::uint64_t bytes = 0;
        REQUIRE(file >> name >> bytes);
        return bytes;
    };
    auto before = read_so_far();
    CHECK(recovered(store).decisions.size() == 1);
    CHECK(read_so_far() - before < 3 * all);
    before = read_so_far();
    REQUIRE(run(store, {heavy(rounds)}));
    CHECK(read_so_far() - before < all / 10);
}

TEST_CASE("an experiment has two lines in the audit log: who asked for it, and how it ended", "[unit][store][audit]") {
    const TemporaryFolder folder;
    StoreOptions options;
    options.unix_now = [] { return std::int64_t{1'800'000'000}; };
    auto store = open_store(folder, options);
    for (const auto* state : {"queued", "starting", "running", "running", "cancelled", "cancelled"}) {
        const bool over = std::string(state) == "cancelled";
        REQUIRE(run(store, {stored_experiment(state, over ? "cancelled by bob" : "")}));
    }
    AuditStore audit(store.database());
    const auto lines = *audit.entries_after(0, 10);
    REQUIRE(lines.size() == 2);
    const auto submitted = *Json::parse(lines[0].entry);
    CHECK(submitted["event"].text() == "experiment.submitted");
    CHECK(submitted["at"].integer() == 1'800'000'000);
    CHECK(submitted["by"].text() == "operator");
    CHECK(submitted["file_sha256"].text().size() == 64);
    const auto ended = *Json::parse(lines[1].entry);
    CHECK(ended["state"].text() == "cancelled");
    CHECK(ended["reason"].text() == "cancelled by bob");
    CHECK(*audit.verify() == 2);
}

}  // namespace causeway
