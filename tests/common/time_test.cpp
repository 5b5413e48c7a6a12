// Durations: every spelling a person uses, and none that hides a missing unit.
#include "common/time.h"

#include <catch2/catch.hpp>

namespace causeway {

using namespace std::chrono_literals;

TEST_CASE("durations carry a unit", "[common][unit]") {
    CHECK(*parse_duration("250ms") == 250ms);
    CHECK(*parse_duration("1.5s") == 1500ms);
    CHECK(*parse_duration("10m") == 10min);
    CHECK(*parse_duration("2h") == 2h);
    CHECK(*parse_duration("1d") == 24h);
    CHECK(*parse_duration("0") == 0s);
    for (const auto* wrong : {"", "10", "-1s", "s", "1 s", "1e400s", "nan", "infs", "99999999d", "10sec"}) {
        INFO(wrong);
        CHECK(parse_duration(wrong).error().code == "bad_duration");
    }
}

TEST_CASE("durations print for people", "[common][unit]") {
    CHECK(format_duration(250ms) == "250ms");
    CHECK(format_duration(1s) == "1s");
    CHECK(format_duration(1500ms) == "1.5s");
    CHECK(format_duration(59970ms) == "1m");
    CHECK(format_duration(125s) == "2m 05s");
    CHECK(format_duration(3h + 10min) == "3h 10m");
}

TEST_CASE("the monotonic clock starts near zero and does not go back", "[common][unit]") {
    const auto first = real_now();
    CHECK(first >= 0s);
    CHECK(real_now() >= first);
    CHECK(from_seconds(seconds(1500ms)) == 1500ms);
}

}  // namespace causeway
