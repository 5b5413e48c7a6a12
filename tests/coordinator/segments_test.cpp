// Segments on the coordinator's disk: named by their bytes, gone with their round, and never served damaged.
#include <fstream>

#include <catch2/catch.hpp>

#include "coordinator/kept_segments.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t limit = 1 << 20;

Bytes file_of(std::string_view text) {
    return to_bytes(as_bytes(text));
}

std::unique_ptr<Segments> open_segments_at(const fs::path& state) {
    auto segments = Segments::open(state);
    REQUIRE(segments);
    return *std::move(segments);
}

}  // namespace

TEST_CASE("segments are found after a restart, and go when their experiment's next round opens", "[unit][segments]") {
    const TemporaryFolder folder;
    const auto file = file_of("one");
    {
        auto segments = open_segments_at(folder.path);
        REQUIRE(segments->open_round(1, 1));
        REQUIRE(segments->open_round(2, 1));
        REQUIRE(segments->write(1, 1, sha256(file), file));
        REQUIRE(segments->write(2, 1, sha256(file), file));
    }
    auto segments = open_segments_at(folder.path);
    CHECK(*segments->read(sha256(file), limit) == file);
    CHECK(kept_segments(*segments, folder.path, 1, 1, limit)->size() == 1);
    REQUIRE(segments->open_round(1, 2));
    CHECK(kept_segments(*segments, folder.path, 1, 1, limit)->empty());
    CHECK(*segments->read(sha256(file), limit) == file);  // the other experiment's
    segments->forget(2);
    CHECK(segments->read(sha256(file), limit).error().code == "not_found");
    CHECK(segments->find(sha256(file)).empty());
}

TEST_CASE("a damaged segment is not whole, is not read, and is written again", "[unit][segments]") {
    const TemporaryFolder folder;
    const auto good = file_of("good"), bad = file_of("bad!");
    auto segments = open_segments_at(folder.path);
    REQUIRE(segments->open_round(1, 1));
    REQUIRE(segments->write(1, 1, sha256(good), good));
    REQUIRE(segments->write(1, 1, sha256(bad), bad));
    std::ofstream(segments->find(sha256(bad))) << "baD!";
    segments = open_segments_at(folder.path);
    CHECK(segments->read(sha256(bad), limit).error().code == "digest_mismatch");
    const auto whole = kept_segments(*segments, folder.path, 1, 1, limit);
    REQUIRE(whole);
    CHECK(*whole == std::vector<std::pair<Digest, std::uint64_t>>{{sha256(good), 4}});
    REQUIRE(segments->write(1, 1, sha256(bad), bad));
    CHECK(*segments->read(sha256(bad), limit) == bad);
}

TEST_CASE("a segment that has gone is not there any more, and nothing fails for it", "[unit][segments]") {
    const TemporaryFolder folder;
    const auto file = file_of("one");
    auto segments = open_segments_at(folder.path);
    REQUIRE(segments->open_round(1, 1));
    REQUIRE(segments->write(1, 1, sha256(file), file));
    fs::remove(segments->find(sha256(file)));
    CHECK(kept_segments(*segments, folder.path, 1, 1, limit)->empty());
    REQUIRE(segments->write(1, 1, sha256(file), file));
    CHECK(kept_segments(*segments, folder.path, 1, 1, limit)->size() == 1);
}

}  // namespace causeway
