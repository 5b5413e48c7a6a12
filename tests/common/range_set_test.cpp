// Range sets against a set of element numbers, the obviously right version.
#include "common/range_set.h"

#include <set>

#include <catch2/catch.hpp>

#include "common/random.h"

namespace causeway {
namespace {

RangeSet random_set(RandomStream& random) {
    std::vector<Range> ranges;
    std::uint64_t at = 0;
    for (auto count = random.below(6); count > 0; --count) {
        at += random.below(4);
        const auto end = at + 1 + random.below(5);
        ranges.push_back({at, end});
        at = end;
    }
    return *RangeSet::make(ranges, 1000);
}

std::set<std::uint64_t> elements(const RangeSet& set) {
    std::set<std::uint64_t> all;
    for (const auto& range : set.ranges()) {
        for (auto i = range.begin; i < range.end; ++i) {
            all.insert(i);
        }
    }
    return all;
}

}  // namespace

TEST_CASE("union, intersection and containment agree with sets of elements", "[common][property]") {
    RandomStream random({.seed = 11, .purpose = "ranges"});
    for (int trial = 0; trial < 2000; ++trial) {
        const auto a = random_set(random);
        const auto b = random_set(random);
        auto either = elements(a);
        either.merge(elements(b));
        std::set<std::uint64_t> both;
        for (const auto i : elements(a)) {
            if (elements(b).contains(i)) {
                both.insert(i);
            }
        }
        REQUIRE(elements(a.united(b)) == either);
        REQUIRE(elements(a.intersected(b)) == both);
        REQUIRE(a.united(b).contains(a));
        REQUIRE(a.contains(b) == (both == elements(b)));
        REQUIRE(a.element_count() == elements(a).size());
    }
}

TEST_CASE("ranges of a peer are refused when empty, descending, overlapping or past the end", "[common][unit]") {
    CHECK_FALSE(RangeSet::make({{3, 3}}, 10).has_value());
    CHECK_FALSE(RangeSet::make({{5, 2}}, 10).has_value());
    CHECK_FALSE(RangeSet::make({{4, 6}, {0, 2}}, 10).has_value());
    CHECK_FALSE(RangeSet::make({{0, 5}, {4, 6}}, 10).has_value());
    CHECK(RangeSet::make({{0, 11}}, 10).error().message == "a range ends at 11, past the last element 10");
    CHECK(RangeSet::make({{0, 2}, {2, 4}}, 10)->ranges().size() == 1);
    CHECK(RangeSet::all(0).empty());
}

}  // namespace causeway
