// Room for updates that come: never more than the quota, whoever asks in whatever order.
#include <catch2/catch.hpp>

#include "common/random.h"
#include "coordinator/spool_room.h"

namespace causeway {
namespace {

using Answer = SpoolRoom::Answer;

Digest name(std::uint64_t number) {
    Digest digest;
    for (std::size_t i = 0; i < sizeof number; ++i) {
        digest.bytes[i] = static_cast<std::byte>(number >> (8 * i));
    }
    return digest;
}

TEST_CASE("what does not fit now waits, what fits never does, and what could never fit is told at once",
          "[coordinator][spool]") {
    SpoolRoom room;
    CHECK(room.ask(name(1), 60, 100).answer == Answer::take);
    CHECK(room.ask(name(2), 50, 100).answer == Answer::wait);
    CHECK(room.ask(name(3), 40, 100).answer == Answer::take);
    CHECK(room.ask(name(4), 101, 100).answer == Answer::too_large);
    CHECK(room.bytes() == 100);
    room.done(name(1), 0);
    CHECK(room.ask(name(2), 50, 100).answer == Answer::take);
    CHECK(room.ask(name(4), 101, 0).answer == Answer::take);  // 0: no bound
}

TEST_CASE("an update that two members bring takes its room once, until both are done", "[coordinator][spool]") {
    SpoolRoom room;
    CHECK(room.ask(name(1), 60, 100).answer == Answer::take);
    CHECK(room.ask(name(1), 60, 100).answer == Answer::take);
    room.done(name(1), 0);
    CHECK(room.bytes() == 60);
    room.done(name(1), 0);
    CHECK(room.bytes() == 0);
    room.done(name(1), 30);  // nobody's: nothing changes
    CHECK(room.bytes() == 0);
}

TEST_CASE("parts of broken transfers go before anybody waits for room, and are no burden to their own update",
          "[coordinator][spool]") {
    SpoolRoom room;
    room.found(name(1), 70);
    CHECK(room.ask(name(2), 60, 100).remove == std::vector{name(1)});
    room.done(name(2), 40);
    const auto again = room.ask(name(2), 60, 100);
    CHECK(again.answer == Answer::take);
    CHECK(again.remove.empty());
    room.done(name(2), 40);
    CHECK(room.take_parts() == std::vector{name(2)});
    CHECK(room.bytes() == 0);
}

TEST_CASE("with any history what is under way and what is left stay within the quota",
          "[coordinator][spool][property]") {
    const std::uint64_t seed = 11;
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = "spool"});
    for (int life = 0; life < 200; ++life) {
        SpoolRoom room;
        std::vector<Digest> active;
        for (int step = 0; step < 100; ++step) {
            if (!active.empty() && random.below(2) == 0) {
                const auto which = random.below(active.size());
                room.done(active[which], random.below(2) * random.below(20));
                active.erase(active.begin() + static_cast<std::ptrdiff_t>(which));
            } else {
                const auto update = name(random.below(12));
                if (room.ask(update, 25 + std::to_integer<std::uint64_t>(update.bytes[0]), 100).answer ==
                    Answer::take) {
                    active.push_back(update);
                }
            }
            REQUIRE(room.bytes() <= 100);
        }
        for (const auto& update : active) {
            room.done(update, 0);
        }
        (void)room.take_parts();
        CHECK(room.bytes() == 0);
    }
}

}  // namespace
}  // namespace causeway
