// Memory of large values: it is kept for the next of its size, never adds to the peak, and goes back in time. Not in
// sanitizer builds, whose own operator new is the point of them.
#include <vector>

#include <catch2/catch.hpp>

#include "common/large_memory.h"

namespace causeway {
namespace {

constexpr std::size_t large = 16 << 20;

bool is_kept() {
    give_back_spare_memory({});
    { const std::vector<char> first(large); }
    return spare_memory() >= large;
}

}  // namespace

TEST_CASE("memory of a large value serves the next one of about its size", "[unit][memory]") {
    if (is_kept()) {
        const auto had = spare_memory();
        const std::vector<char> next(large - 1000);
        CHECK(spare_memory() == 0);
        const std::vector<char> small(1000);
        CHECK(had < large + (64 << 10));
    }
}

TEST_CASE("no large value is made beside spare memory that cannot serve it", "[unit][memory]") {
    if (is_kept()) {
        const std::vector<char> smaller(large / 2);
        CHECK(spare_memory() == 0);
        { const std::vector<char> another(large); }
        const std::vector<char> larger(2 * large);
        CHECK(spare_memory() == 0);
    }
}

TEST_CASE("spare memory goes back when nobody has wanted it for a while", "[unit][memory]") {
    if (is_kept()) {
        give_back_spare_memory(std::chrono::hours(1));
        CHECK(spare_memory() >= large);
        give_back_spare_memory({});
        CHECK(spare_memory() == 0);
    }
}

}  // namespace causeway
