// Where a round's time goes: the parts sum to the whole exactly, whatever members say and in whatever order.
#include <limits>

#include <catch2/catch.hpp>

#include "common/random.h"
#include "coordinator/round_clock.h"

namespace causeway {

using namespace std::chrono_literals;

TEST_CASE("a round's time is cut where it went from one thing to the next", "[clock]") {
    RoundClock clock;
    clock.begin(10s);
    clock.waits(10s, RoundClock::Wait::evaluation);
    clock.commit_stored(11s);
    clock.waits(13s, RoundClock::Wait::members);
    clock.opened(18s);
    clock.assigned(18s, "a");
    clock.assigned(18s, "b");
    clock.offered(20s, "a", 1.0);
    clock.absorbed(21s, "a", 100ms, 100ms);
    clock.offered(27s, "b", 6.5);
    clock.absorbed(30s, "b", 1s, 500ms);
    clock.closed(30s);
    const auto times = clock.times(33s, 1s);
    CHECK(times.last == "b");
    CHECK(times.wall == 23s);
    CHECK(times.parts.commit == 1s + 2s);
    CHECK(times.parts.evaluate == 2s);
    CHECK(times.parts.select == 5s);
    CHECK(times.parts.train == 6500ms);
    CHECK(times.parts.distribute == 2500ms);
    CHECK(times.parts.verify == 1s);
    CHECK(times.parts.collect == 1500ms);
    CHECK(times.parts.aggregate == 500ms + 1s);
    CHECK(times.parts.sum() == times.wall);
    CHECK(times.exchange == 10s);
    CHECK(times.members["a"]["train"].number() == 1.0);
    CHECK(times.members["a"]["end"].text() == "counted");
}

TEST_CASE("a round that opens with a commit is told to its members when the commit is durable", "[clock]") {
    RoundClock clock;
    clock.begin(10s);
    clock.opened(10s);
    clock.assigned(10s, "a");
    clock.commit_stored(12s);
    clock.left(15s, "a", "silent");
    clock.closed(15s);
    const auto times = clock.times(15s, 0s);
    CHECK(times.parts.commit == 2s);
    CHECK(times.parts.distribute == 3s);
    CHECK(times.exchange == 0s);
    CHECK(times.members["a"]["end"].text() == "silent");
    CHECK(times.parts.sum() == times.wall);
}

TEST_CASE("whatever members say, the parts sum to the round's time", "[clock]") {
    const double lies[] = {-1, 1e300, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(), 0.5};
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        RandomStream random({.seed = seed, .purpose = "clock"});
        Instant now = 1s;
        RoundClock clock;
        clock.begin(now);
        clock.opened(now += std::chrono::milliseconds(random.below(50)));
        for (int i = 0; i < 40; ++i) {
            now += std::chrono::milliseconds(random.below(100));
            const auto node = std::string(1, static_cast<char>('a' + random.below(4)));
            switch (random.below(6)) {
                case 0: clock.assigned(now, node); break;
                case 1: clock.working(now, node); break;
                case 2: clock.offered(now, node, lies[random.below(5)]); break;
                case 3: clock.absorbed(now, node, std::chrono::hours(random.below(2)), 3ms); break;
                case 4: clock.left(now, node, "silent"); break;
                default: clock.commit_stored(now); break;
            }
        }
        clock.closed(now);
        const auto times = clock.times(now + 7ms, std::chrono::milliseconds(random.below(20)));
        INFO("seed " << seed);
        CHECK(times.parts.sum() == times.wall);
        const auto parts = times.parts.json();
        for (const auto& [name, value] : parts.fields()) {
            CHECK(value.number() >= 0);
        }
    }
}

}  // namespace causeway
