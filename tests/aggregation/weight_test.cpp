// Weights from integers, floating point and text: what is not an integer in [0, 2^29) is refused, never replaced.
#include "aggregation/weight.h"

#include <limits>

#include <catch2/catch.hpp>

namespace causeway {

TEST_CASE("negative and too large weights are refused, and never become 1", "[unit][paper][case5]") {
    for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{1} << 29, std::numeric_limits<std::int64_t>::min(),
                                     std::numeric_limits<std::int64_t>::max()}) {
        CAPTURE(wrong);
        CHECK(checked_weight(wrong).error().code == "bad_weight");
    }
    CHECK(*checked_weight(std::int64_t{0}) == 0);
    CHECK(*checked_weight((std::int64_t{1} << 29) - 1) == 536'870'911);
}

TEST_CASE("weights that are NaN, infinite, fractions or negative are refused", "[unit][paper][case5]") {
    for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), 0.5, -1.0, 0x1p29, 1e300}) {
        CAPTURE(wrong);
        CHECK(checked_weight(wrong).error().code == "bad_weight");
    }
    CHECK(*checked_weight(12.0) == 12);
}

TEST_CASE("text that is not a whole number is refused as a weight", "[unit][paper][case5]") {
    for (const char* wrong : {"", "one", "nan", "inf", "-3", "1.0", "7 ", " 7", "0x10", "99999999999999999999"}) {
        CAPTURE(wrong);
        CHECK(checked_weight(std::string_view(wrong)).error().code == "bad_weight");
    }
    CHECK(*checked_weight(std::string_view("32")) == 32);
}

}  // namespace causeway
