// The clock of loops: a gap between two turns is nobody's delay.
#include "common/listening_clock.h"

#include <catch2/catch.hpp>

namespace causeway {

using namespace std::chrono_literals;

TEST_CASE("time goes on with turns, as long as they come often enough", "[common][unit]") {
    ListeningClock clock(10s);
    for (Instant real = 10s; real <= 15s; real += ListeningClock::longest_gap) {
        CHECK(clock.turn(real) == 0s);
        CHECK(clock.now() == real);
    }
    CHECK(clock.real_at(20s) == 20s);
    CHECK(clock.real_at(never) == never);
}

TEST_CASE("a process that stood still counts nothing of it, nor while it hears what has come", "[common][unit]") {
    ListeningClock clock(0s);
    CHECK(clock.turn(3600s) == 3600s);
    CHECK(clock.now() == 0s);
    CHECK(clock.turn(3600s + 400ms) == 0s);
    CHECK(clock.now() == 0s);
    CHECK(clock.real_at(5s) == 3600s + ListeningClock::hearing + 5s);
    (void)clock.turn(3600s + 800ms);
    (void)clock.turn(3600s + ListeningClock::hearing + 100ms);
    CHECK(clock.now() == 100ms);
}

TEST_CASE("one that stands still again at once counts little", "[common][unit]") {
    ListeningClock clock(0s);
    (void)clock.turn(60s);
    (void)clock.turn(60s + 10ms);
    CHECK(clock.turn(120s) > 59s);
    CHECK(clock.now() == ListeningClock::longest_gap);
}

TEST_CASE("a loop whose every turn is slow still comes to its deadlines", "[common][unit]") {
    ListeningClock clock(0s);
    Instant real{};
    while (clock.now() < 60s) {
        real += 3s;
        REQUIRE(clock.turn(real) == 3s);
        REQUIRE(real < 3600s);
    }
}

TEST_CASE("what is heard before a wake is heard before the instant of it", "[common][unit]") {
    ListeningClock clock(0s);
    clock.ran_until(7s);
    CHECK(clock.before(8s) == 7s);
    CHECK(clock.before(never) == 7s);
    CHECK(clock.before(7s) == 7s - 1ns);
    CHECK(clock.before(3s) == 3s - 1ns);
}

TEST_CASE("a clock that goes back stands still", "[common][unit]") {
    ListeningClock clock(10s);
    CHECK(clock.turn(5s) == 0s);
    CHECK(clock.now() == 10s);
}

}  // namespace causeway
