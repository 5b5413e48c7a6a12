// Snapshots on disk: durable before the commit names them, gone only when no commit does.
#include "coordinator/snapshots.h"

#include "coordinator/store.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

Bytes snapshot_model(std::uint32_t round) {
    return to_bytes("model of round " + std::to_string(round));
}

Snapshots open_snapshots(const TemporaryFolder& folder) {
    auto snapshots = Snapshots::open(folder.path);
    REQUIRE(snapshots);
    return *std::move(snapshots);
}

Status snapshot_commit(Store& store, std::uint32_t round, const Digest& digest) {
    SaveCommit snapshot_commit;
    snapshot_commit.experiment = 1;
    snapshot_commit.round = round;
    snapshot_commit.model = digest;
    snapshot_commit.model_bytes = snapshot_model(round).size();
    return store.execute(std::vector<Persist>{SaveExperiment{1, "e", "", "running", "", ""}, snapshot_commit});
}

}  // namespace

TEST_CASE("a snapshot has its digest as name and is verified when read", "[unit][snapshots]") {
    const TemporaryFolder folder;
    auto snapshots = open_snapshots(folder);
    const auto digest = *snapshots.write(snapshot_model(1));
    CHECK(digest == sha256(snapshot_model(1)));
    CHECK(snapshots.has(digest));
    CHECK(snapshots.path(digest).filename() == digest.hex() + ".safetensors");
    CHECK(*snapshots.read(digest, 1000) == snapshot_model(1));
    CHECK(snapshots.read(digest, 3).error().kind == ErrorKind::overloaded);
    CHECK(snapshots.read(sha256("x"), 1000).error().kind == ErrorKind::not_found);
    REQUIRE(write_file_durably(snapshots.path(digest), as_bytes("Model of round 1")));
    CHECK(snapshots.read(digest, 1000).error().code == "digest_mismatch");
}

TEST_CASE("writing an equal model again costs no flush", "[unit][snapshots]") {
    const TemporaryFolder folder;
    auto snapshots = open_snapshots(folder);
    REQUIRE(snapshots.write(snapshot_model(1)));
    CHECK(snapshots.flushes() == 2);
    REQUIRE(snapshots.write(snapshot_model(1)));
    CHECK(snapshots.flushes() == 2);
}

TEST_CASE("a crash between snapshot and commit leaves an orphan, which the next start removes", "[snapshots][crash]") {
    const TemporaryFolder folder;
    Digest committed;
    Digest orphan;
    {
        auto store = *Store::open(folder.path);
        auto snapshots = open_snapshots(folder);
        committed = *snapshots.write(snapshot_model(0));
        REQUIRE(snapshot_commit(store, 0, committed));
        orphan = *snapshots.write(snapshot_model(1));
        REQUIRE(write_file_durably(snapshots.path(sha256("half")).string() + ".tmp", as_bytes("hal")));
    }
    auto store = *Store::open(folder.path);
    auto snapshots = open_snapshots(folder);
    CHECK(snapshots.has(orphan));
    REQUIRE(snapshots.remove_unnamed(*store.named_models()));
    CHECK(snapshots.has(committed));
    CHECK_FALSE(snapshots.has(orphan));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path / "snapshots"), {}) == 1);
}

TEST_CASE("a snapshot whose commit is still to come is not removed, one that is no longer named is",
          "[unit][snapshots]") {
    const TemporaryFolder folder;
    auto store = *Store::open(folder.path);
    auto snapshots = open_snapshots(folder);
    std::vector<Digest> models;
    for (std::uint32_t round = 0; round < 8; ++round) {
        models.push_back(*snapshots.write(snapshot_model(round)));
        REQUIRE(snapshots.remove_unnamed(*store.named_models()));  // another experiment's commit falls in between
        REQUIRE(snapshots.has(models.back()));
        REQUIRE(snapshot_commit(store, round, models.back()));
        REQUIRE(snapshots.remove_unnamed(*store.named_models()));
        for (std::uint32_t old = 0; old <= round; ++old) {
            REQUIRE(snapshots.has(models[old]) == (old + 3 > round));
        }
    }
    const auto failed = *snapshots.write(snapshot_model(99));
    snapshots.abandon(failed);
    REQUIRE(snapshots.remove_unnamed(*store.named_models()));
    CHECK_FALSE(snapshots.has(failed));
}

}  // namespace causeway
