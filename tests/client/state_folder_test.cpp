// Two-phase client state: an update counts with its state or not at all, wherever the process is killed.
#include "client/state_folder.h"

#include <random>

#include "tests/temporary_folder.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t experiment = 7;

Bytes update_of(std::uint32_t round) {
    return to_bytes("the update of round " + std::to_string(round));
}

HeldUpdate held_of(std::uint32_t round) {
    HeldUpdate held;
    held.experiment = experiment;
    held.round = round;
    held.digest = sha256(update_of(round));
    held.bytes = update_of(round).size();
    held.weight = 40 + round;
    held.metrics = {0.5, 100, 1.25};
    held.start_model = sha256("start");
    return held;
}

StateSections sections_of(std::uint32_t round) {
    return {{"data_cursor", to_bytes(std::to_string(round))}, {"residual", Bytes(100 * round, std::byte{1})}};
}

void hold(StateFolder& folder, std::uint32_t round) {
    REQUIRE(folder.hold(held_of(round), sections_of(round), update_of(round)));
}

StateFolder reopen(const TemporaryFolder& temporary) {
    auto folder = StateFolder::open(temporary.path);
    REQUIRE(folder);
    return *std::move(folder);
}

fs::path base_file(const TemporaryFolder& temporary) {
    return temporary.path / "experiments" / "7.base";
}
fs::path pending_file(const TemporaryFolder& temporary) {
    return temporary.path / "experiments" / "7.pending";
}

}  // namespace

TEST_CASE("a counted update's state becomes the base", "[unit][state]") {
    const TemporaryFolder temporary;
    auto folder = reopen(temporary);
    CHECK(folder.base(experiment)->empty());
    hold(folder, 1);
    CHECK(folder.base(experiment)->empty());  // not yet
    CHECK(*folder.held() == std::vector{held_of(1)});
    REQUIRE(folder.commit(experiment, held_of(1).digest));
    CHECK(*folder.base(experiment) == sections_of(1));
    CHECK(folder.held()->empty());
}

TEST_CASE("an update that does not count leaves the base as it was", "[unit][state]") {
    const TemporaryFolder temporary;
    auto folder = reopen(temporary);
    hold(folder, 1);
    REQUIRE(folder.commit(experiment, held_of(1).digest));
    hold(folder, 2);
    REQUIRE(folder.rollback(experiment, held_of(2).digest));
    CHECK(*folder.base(experiment) == sections_of(1));
    CHECK(folder.held()->empty());
}

TEST_CASE("after a restart the client knows what it holds and can send the very bytes", "[unit][state]") {
    const TemporaryFolder temporary;
    {
        auto folder = reopen(temporary);
        hold(folder, 3);
    }
    const auto folder = reopen(temporary);
    CHECK(*folder.held() == std::vector{held_of(3)});
    CHECK(*folder.update(held_of(3).digest) == update_of(3));
    CHECK(folder.update(sha256("another")).error().kind == ErrorKind::not_found);
}

TEST_CASE("a word about another update than the pending one changes nothing", "[unit][state]") {
    const TemporaryFolder temporary;
    auto folder = reopen(temporary);
    hold(folder, 2);
    REQUIRE(folder.commit(experiment, held_of(1).digest));
    REQUIRE(folder.rollback(experiment, held_of(1).digest));
    REQUIRE(folder.commit(8, held_of(2).digest));
    CHECK(*folder.held() == std::vector{held_of(2)});
    REQUIRE(folder.commit(experiment, held_of(2).digest));
    REQUIRE(folder.commit(experiment, held_of(2).digest));  // said twice
    CHECK(*folder.base(experiment) == sections_of(2));
}

TEST_CASE("every point of a commit cut short is before it or after it", "[unit][state][crash]") {
    // A commit is: write base.tmp, rename it to base, remove pending. The states between are made by hand.
    const TemporaryFolder temporary;
    auto folder = reopen(temporary);
    hold(folder, 1);
    REQUIRE(folder.commit(experiment, held_of(1).digest));
    hold(folder, 2);
    const auto pending = *read_file(pending_file(temporary), 1 << 20);
    const auto old_base = *read_file(base_file(temporary), 1 << 20);
    REQUIRE(folder.commit(experiment, held_of(2).digest));
    const auto new_base = *read_file(base_file(temporary), 1 << 20);

    for (std::size_t written = 0; written <= new_base.size(); written += 7) {  // killed while base.tmp was written
        REQUIRE(write_file_durably(base_file(temporary), old_base));
        REQUIRE(write_file_durably(pending_file(temporary), pending));
        const auto tmp = base_file(temporary).string() + ".tmp";
        REQUIRE(write_file_durably(tmp, ByteView(new_base).first(written)));
        const auto after = reopen(temporary);
        REQUIRE(*after.base(experiment) == sections_of(1));
        REQUIRE(*after.held() == std::vector{held_of(2)});
        REQUIRE_FALSE(fs::exists(tmp));
    }
    REQUIRE(write_file_durably(base_file(temporary), new_base));  // killed before pending was removed
    REQUIRE(write_file_durably(pending_file(temporary), pending));
    const auto after = reopen(temporary);
    CHECK(*after.base(experiment) == sections_of(2));
    CHECK(after.held()->empty());
}

TEST_CASE("a killed client has the state of the last round it finished, or of the next", "[state][crash][property]") {
    std::mt19937 random(5);
    for (int trial = 0; trial < 12; ++trial) {
        const TemporaryFolder temporary;
        const int steps = static_cast<int>(random() % 20);
        CAPTURE(trial, steps);
        kill_after(steps, [&](const auto& finished) {
            auto folder = *StateFolder::open(temporary.path);
            for (std::uint32_t round = 1; round <= 10; ++round) {  // two steps a round: hold, then the word
                (void)folder.hold(held_of(round), sections_of(round), update_of(round));
                finished();
                (void)folder.commit(experiment, held_of(round).digest);
                finished();
            }
        });
        const auto folder = reopen(temporary);
        const auto base = *folder.base(experiment);
        const auto held = *folder.held();
        const auto round =
            base.empty() ? 0u : static_cast<std::uint32_t>(std::stoul(std::string(as_text(base.at("data_cursor")))));
        REQUIRE(round >= static_cast<std::uint32_t>(steps) / 2);
        REQUIRE((base.empty() || base == sections_of(round)));
        REQUIRE((held.empty() || held == std::vector{held_of(round + 1)}));
        if (steps % 2 == 1 && round == static_cast<std::uint32_t>(steps) / 2) {
            REQUIRE(held.size() == 1);  // it was told that this update is held
        }
    }
}

TEST_CASE("an update that is not the one described is not held", "[unit][state]") {
    const TemporaryFolder temporary;
    auto folder = reopen(temporary);
    auto shorter = update_of(1);
    shorter.pop_back();
    CHECK(folder.hold(held_of(1), {}, shorter).error().code == "digest_mismatch");
    CHECK(folder.held()->empty());
    REQUIRE(folder.hold(held_of(1), {}, update_of(2)));  // as long, but another: never handed out
    CHECK(folder.held().error().code == "state_damaged");
    CHECK(folder.update(held_of(1).digest).error().code == "state_damaged");
}

TEST_CASE("without sections a word about the update leaves nothing behind, and no base", "[unit][state]") {
    const TemporaryFolder temporary;
    auto folder = reopen(temporary);
    REQUIRE(folder.hold(held_of(1), {}, update_of(1)));
    REQUIRE(folder.commit(experiment, held_of(2).digest));  // of another update
    CHECK(*folder.held() == std::vector{held_of(1)});
    REQUIRE(folder.commit(experiment, held_of(1).digest));
    CHECK(folder.held()->empty());
    CHECK_FALSE(fs::exists(base_file(temporary)));
    REQUIRE(folder.hold(held_of(2), {}, update_of(2)));
    REQUIRE(folder.rollback(experiment, held_of(2).digest));
    CHECK_FALSE(fs::exists(pending_file(temporary)));
    CHECK(reopen(temporary).held()->empty());
    CHECK(fs::is_empty(temporary.path / "experiments"));
    hold(folder, 3);
    REQUIRE(folder.commit(experiment, held_of(3).digest));
    REQUIRE(folder.hold(held_of(4), {}, update_of(4)));  // none this time: the base changes too
    REQUIRE(folder.commit(experiment, held_of(4).digest));
    CHECK(folder.base(experiment)->empty());
}

TEST_CASE("a damaged state file is named, at any byte, and never taken for state", "[unit][state]") {
    const TemporaryFolder temporary;
    auto folder = reopen(temporary);
    hold(folder, 1);
    const auto good = *read_file(pending_file(temporary), 1 << 20);
    for (std::size_t i = 0; i < good.size(); i += 3) {
        auto bad = good;
        bad[i] ^= std::byte{1};
        REQUIRE(write_file_durably(pending_file(temporary), bad));
        REQUIRE(folder.held().error().code == "state_damaged");
        REQUIRE(write_file_durably(pending_file(temporary), ByteView(good).first(i)));
        REQUIRE(folder.held().error().code == "state_damaged");
    }
}

TEST_CASE("a damaged update without state is set aside and made again; with state it is refused", "[unit][state]") {
    for (const bool with_state : {false, true}) {
        const TemporaryFolder temporary;
        {
            auto folder = reopen(temporary);
            REQUIRE(folder.hold(held_of(1), with_state ? sections_of(1) : StateSections{}, update_of(1)));
        }
        const auto good = *read_file(pending_file(temporary), 1 << 20);
        for (std::size_t i = 0; i < good.size(); ++i) {
            auto bad = good;
            bad[i] ^= std::byte{0x21};
            REQUIRE(write_file_durably(pending_file(temporary), bad));
            auto folder = StateFolder::open(temporary.path);
            INFO("byte " << i << (with_state ? " with state" : " without state"));
            if (with_state) {
                REQUIRE(!folder);
                CHECK(folder.error().code == "state_damaged");
                continue;
            }
            REQUIRE(folder);
            CHECK(folder->held()->empty());
            CHECK(*read_file(pending_file(temporary).string() + ".damaged", 1 << 20) == bad);
            hold(*folder, 1);  // made again
            CHECK(folder->held()->size() == 1);
        }
    }
}

TEST_CASE("an experiment that is over leaves nothing behind, others stay", "[unit][state]") {
    const TemporaryFolder temporary;
    auto folder = reopen(temporary);
    hold(folder, 1);
    REQUIRE(folder.commit(experiment, held_of(1).digest));
    hold(folder, 2);
    auto other = held_of(1);
    other.experiment = 8;
    REQUIRE(folder.hold(other, {}, update_of(1)));
    REQUIRE(folder.forget(experiment));
    REQUIRE(folder.forget(experiment));
    CHECK(folder.base(experiment)->empty());
    CHECK(*folder.held() == std::vector{other});
}

TEST_CASE("a round under way is kept for the round and model that it is of, until its update is held",
          "[unit][state]") {
    const TemporaryFolder temporary;
    const auto file = temporary.path / "experiments" / "7.running";
    const KeptRun run{.round = 3, .start_model = sha256("start"), .job = sha256("job"), .run = to_bytes("the run")};
    auto folder = reopen(temporary);
    CHECK_FALSE(folder.kept_run(experiment, 3, sha256("start")));
    REQUIRE(folder.keep_run(experiment, run));
    folder = reopen(temporary);
    CHECK(folder.kept_run(experiment, 3, sha256("start")) == run);
    CHECK(folder.held()->empty());
    CHECK_FALSE(folder.kept_run(experiment, 4, sha256("start")));  // another round has no use for it
    CHECK_FALSE(fs::exists(file));

    REQUIRE(folder.keep_run(experiment, run));
    CHECK_FALSE(folder.kept_run(experiment, 3, sha256("another start")));
    REQUIRE(folder.keep_run(experiment, run));
    hold(folder, 3);
    CHECK_FALSE(fs::exists(file));
    REQUIRE(folder.keep_run(experiment, run));
    REQUIRE(folder.forget(experiment));
    CHECK_FALSE(fs::exists(file));
}

TEST_CASE("a damaged round under way is trained anew, whatever byte is wrong", "[unit][state]") {
    const TemporaryFolder temporary;
    const auto file = temporary.path / "experiments" / "7.running";
    auto folder = reopen(temporary);
    const KeptRun run{.round = 3, .start_model = sha256("start"), .job = sha256("job"), .run = to_bytes("the run")};
    REQUIRE(folder.keep_run(experiment, run));
    const auto whole = *read_file(file, 1 << 16);
    for (std::size_t at = 0; at < whole.size(); ++at) {
        auto damaged = whole;
        damaged[at] ^= std::byte{1};
        REQUIRE(write_file_durably(file, damaged, FileMode::secret));
        CHECK_FALSE(folder.kept_run(experiment, 3, sha256("start")));
        CHECK_FALSE(fs::exists(file));
    }
}

TEST_CASE("a state folder of a newer release is refused", "[unit][state]") {
    const TemporaryFolder temporary;
    { const auto folder = reopen(temporary); }
    REQUIRE(write_file_durably(temporary.path / "format", as_bytes("3")));
    const auto folder = StateFolder::open(temporary.path);
    REQUIRE_FALSE(folder);
    CHECK(folder.error().code == "newer_format");
    CHECK(folder.error().kind == ErrorKind::unsupported);
}

}  // namespace causeway::node
