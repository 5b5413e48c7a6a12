// A staged copy: whole, marked, and above every epoch at its first start, so that no old lease is taken for a new one.
#include <fstream>

#include <catch2/catch.hpp>

#include "coordinator/audit_store.h"
#include "coordinator/backup.h"
#include "coordinator/store.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t now_s = 1'800'000'000;

Store open_backup_at(const fs::path& folder, std::int64_t unix_s = now_s) {
    auto store = Store::open(folder, {.unix_now = [unix_s] { return unix_s; }});
    REQUIRE(store);
    return *std::move(store);
}

Digest backup_model_of(std::uint32_t round) {
    return sha256("model " + std::to_string(round));
}

void write_model(const fs::path& state, std::uint32_t round) {
    fs::create_directories(state / "snapshots");
    std::ofstream(state / "snapshots" / (backup_model_of(round).hex() + ".safetensors")) << "model " << round;
}

void commit_backup_rounds(Store& store, std::uint32_t last) {
    REQUIRE(store.execute(std::vector<Persist>{SaveExperiment{3, "digits", "", "running", "", "operator"}}));
    for (std::uint32_t round = 0; round <= last; ++round) {
        SaveCommit commit{3, round, backup_model_of(round), 10, {}, {"ann"}, Json::object()};
        REQUIRE(store.execute(std::vector<Persist>{commit}));
    }
}

/// What `backup` does with the stage, without the identity.
void copy_stage(const fs::path& state, const fs::path& to) {
    fs::remove_all(to);
    fs::copy(state / "backup" / "staged", to, fs::copy_options::recursive);
}

}  // namespace

TEST_CASE("every start from one copy has an epoch above all that were used since it was taken", "[unit][store]") {
    const TemporaryFolder folder;
    const auto state = folder.path / "state";
    const auto copy = folder.path / "copy";
    fs::create_directory(state);
    write_model(state, 1);
    {
        auto store = open_backup_at(state);
        commit_backup_rounds(store, 1);
        REQUIRE(stage_backup(store.database(), state, "alice", now_s));
        copy_stage(state, copy);
    }
    std::uint64_t highest = 0;
    for (int start = 0; start < 5; ++start) {  // life goes on without the copy
        highest = open_backup_at(state).epoch();
    }
    for (const auto later_s : {now_s + 100, now_s + 200}) {  // restored, lived, lost, and restored from the same copy
        const auto again = folder.path / std::to_string(later_s);
        fs::copy(copy, again, fs::copy_options::recursive);
        for (int start = 0; start < 5; ++start) {
            const auto epoch = open_backup_at(again, later_s).epoch();
            CHECK(epoch > highest);
            highest = epoch;
        }
        auto restored = open_backup_at(again, later_s);
        CHECK(restored.load()->experiments.at(0).rounds.back().round == 1);
        const auto lines = *AuditStore(restored.database()).entries_after(0, 10);
        CHECK(Json::parse(lines.back().entry)->dump() ==
              R"({"at":)" + std::to_string(later_s) +
                  R"(,"event":"federation.restored","copied_at":1800000000,"tokens_dropped":0})");
        highest = restored.epoch();
    }
}

TEST_CASE("a copy has the models that are left, and none is made without the last one", "[unit][store]") {
    const TemporaryFolder folder;
    const auto& state = folder.path;
    auto store = open_backup_at(state);
    commit_backup_rounds(store, 2);
    write_model(state, 1);
    const auto refused = stage_backup(store.database(), state, "alice", now_s);
    REQUIRE(!refused);
    CHECK(refused.error().code == "snapshot_lost");
    CHECK(!fs::exists(state / "backup" / "staged"));

    write_model(state, 2);
    REQUIRE(stage_backup(store.database(), state, "alice", now_s));
    for (std::uint32_t round = 0; round <= 2; ++round) {
        CHECK(fs::exists(state / "backup" / "staged" / "snapshots" / (backup_model_of(round).hex() + ".safetensors")) ==
              (round > 0));
    }
    fs::remove(state / "snapshots" /
               (backup_model_of(2).hex() + ".safetensors"));  // by a later commit: the copy keeps it
    CHECK(fs::file_size(state / "backup" / "staged" / "snapshots" / (backup_model_of(2).hex() + ".safetensors")) > 0);
}

TEST_CASE("a folder without a store, or with one of a newer format, gives no copy", "[unit][store]") {
    const TemporaryFolder folder;
    CHECK(stage_idle_backup(folder.path, now_s).error().code == "no_such_file");
    {
        auto store = open_backup_at(folder.path);
        REQUIRE(store.database().run_script("PRAGMA user_version=9999"));
    }
    CHECK(stage_idle_backup(folder.path, now_s).error().code == "newer_format");
}

}  // namespace causeway
