// A slowed device on a clock made of numbers: every stretch of computing takes so many times as long, waiting does not.
//
// The clock moves only where the test moves it or a pause is taken, so each figure here is exact.
#include <catch2/catch.hpp>

#include "client/slow_device.h"

namespace causeway::node {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct SlowBench {
    explicit SlowBench(double factor, Duration late = {})
        : device(factor, [this] { return clock; },
                 [this, late](Duration pause) {
                     ++pauses;
                     clock += pause + late;
                 }) {
        device.resume();
    }
    Instant clock = milliseconds(7);
    int pauses = 0;
    SlowDevice device;
};

}  // namespace

TEST_CASE("computing takes so many times as long, and waiting for others as long as it takes", "[slow]") {
    SlowBench bench(10);
    bench.clock += milliseconds(3);
    CHECK(bench.device.now() == milliseconds(7 + 30));
    bench.clock += milliseconds(2);
    CHECK(bench.device.now() == milliseconds(7 + 50));
    bench.clock += milliseconds(400);  // nobody sent anything
    bench.device.resume();
    bench.clock += milliseconds(1);
    CHECK(bench.device.now() == milliseconds(7 + 450 + 10));
}

TEST_CASE("short stretches are owed until they are worth a pause, and a late wake-up is given back", "[slow]") {
    SlowBench bench(3, microseconds(60));
    for (int i = 0; i < 1000; ++i) {
        bench.clock += microseconds(20);
        (void)bench.device.now();
    }
    CHECK(bench.pauses < 200);
    CHECK(bench.clock - milliseconds(7) > microseconds(59'700));  // of 60 ms; a pause's worth may still be owed
    CHECK(bench.clock - milliseconds(7) < microseconds(60'300));
}

TEST_CASE("a factor of one is the clock itself", "[slow]") {
    SlowBench bench(1);
    bench.clock += milliseconds(500);
    CHECK(bench.device.now() == milliseconds(507));
    CHECK(bench.pauses == 0);
}

}  // namespace causeway::node
