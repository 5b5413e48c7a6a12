// State folders that older builds wrote open in this one, with the update that waits and the state that goes with it.
//
// formats/format-1-*.txt hold the files that two builds left, both of format 1, in hexadecimal: experiment 4 with a
// base and a pending update of momenta, experiment 5 with a pending update alone.
#include <filesystem>
#include <sstream>

#include <catch2/catch.hpp>

#include "client/state_folder.h"
#include "client/state_migration.h"
#include "common/random.h"
#include "tests/temporary_folder.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

const char* const older_forms[] = {"format-1-joined.txt", "format-1-split.txt"};

/// The folder as the older build left it.
void lay_out(const fs::path& state, const std::string& form) {
    const auto file = read_file(fs::path(CAUSEWAY_SOURCE_ROOT) / "tests/client/formats" / form, 1 << 20);
    REQUIRE(file.has_value());
    REQUIRE(make_private_folder(state / "experiments"));
    REQUIRE(write_file_durably(state / "format", as_bytes("1")));
    std::istringstream lines{std::string(as_text(*file))};
    std::string name, hex;
    int count = 0;
    while (lines >> name >> hex) {
        const auto bytes = from_hex(hex);
        REQUIRE(bytes.has_value());
        REQUIRE(write_file_durably(state / "experiments" / name, *bytes, FileMode::secret));
        ++count;
    }
    REQUIRE(count == 3);
}

void check_contents(const fs::path& state) {
    auto folder = StateFolder::open(state);
    REQUIRE(folder.has_value());
    CHECK(as_text(*read_file(state / "format", 64)) == state_format);
    CHECK(folder->base(4)->at("momentum") == to_bytes("old moments"));
    const auto held = folder->held();
    REQUIRE(held.has_value());
    REQUIRE(held->size() == 2);
    CHECK((*held)[0].round == 3);
    CHECK((*held)[0].weight == 17);
    CHECK((*held)[0].metrics.train_seconds == 1.5);
    CHECK(*folder->update((*held)[0].digest) == to_bytes("the second update, which is pending"));
    CHECK(*folder->update((*held)[1].digest) == to_bytes("no sections with this one"));
    REQUIRE(folder->commit(4, (*held)[0].digest));
    CHECK(folder->base(4)->at("momentum") == to_bytes("new moments"));
    CHECK(folder->base(4)->at("residual") == Bytes(40, std::byte{9}));
}

TEST_CASE("a folder of every older form opens with what waits in it, and the old one is kept beside it",
          "[unit][state][migration]") {
    for (const auto* form : older_forms) {
        INFO(form);
        const TemporaryFolder temporary, untouched;
        lay_out(temporary.path, form);
        lay_out(untouched.path, form);
        check_contents(temporary.path);
        for (const auto* name : {"4.base", "4.pending", "5.pending"}) {
            CHECK(*read_file(temporary.path / "experiments.format-1" / name, 1 << 20) ==
                  *read_file(untouched.path / "experiments" / name, 1 << 20));
        }
    }
}

TEST_CASE("killed at any point, the next start brings the folder up to date from where it is",
          "[unit][state][migration]") {
    for (const auto* form : older_forms) {
        const TemporaryFolder done;
        lay_out(done.path, form);
        REQUIRE(bring_up_to_date(done.path));
        for (int point = 0; point < 5; ++point) {
            INFO(form << ", point " << point);
            const TemporaryFolder temporary;
            lay_out(temporary.path, form);
            const auto copy = temporary.path / "experiments.format-1";
            if (point == 0) {  // in the middle of the copy
                REQUIRE(make_private_folder(copy.string() + ".tmp"));
                fs::copy_file(temporary.path / "experiments" / "4.base", copy.string() + ".tmp/4.base");
            } else {
                fs::copy(temporary.path / "experiments", copy);
            }
            for (const auto& [least, name] : {std::pair(2, "4.pending"), std::pair(3, "5.pending")}) {
                if (point >= least) {
                    fs::copy_file(done.path / "experiments" / name, temporary.path / "experiments" / name,
                                  fs::copy_options::overwrite_existing);
                }
            }
            if (point == 4) {  // in the middle of a file
                REQUIRE(write_file_durably(temporary.path / "experiments" / "5.pending.tmp", as_bytes("CWPE")));
            }
            check_contents(temporary.path);
            CHECK(fs::exists(copy / "5.pending"));
        }
    }
}

TEST_CASE("a damaged file of an older form is named, and nothing is lost or called new", "[unit][state][migration]") {
    const std::uint64_t seed = 6;
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = "damage"});
    for (const auto* form : older_forms) {
        const TemporaryFolder temporary;
        lay_out(temporary.path, form);
        const auto path = temporary.path / "experiments" / "5.pending";
        const auto good = *read_file(path, 1 << 20);
        for (int i = 0; i < 100; ++i) {
            auto bad = good;
            if (random.below(4) == 0) {
                bad.resize(random.below(good.size()));
            } else {
                bad[random.below(bad.size() - 1)] ^= std::byte{4};
            }
            REQUIRE(write_file_durably(path, bad));
            const auto opened = StateFolder::open(temporary.path);
            REQUIRE_FALSE(opened.has_value());
            CHECK(opened.error().code == "state_damaged");
            CHECK(fs::exists(temporary.path / "experiments.format-1"));
        }
        REQUIRE(write_file_durably(path, good));
        CHECK(as_text(*read_file(temporary.path / "format", 64)) == "1");
        check_contents(temporary.path);
    }
}

}  // namespace
}  // namespace causeway::node
