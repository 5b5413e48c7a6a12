// Range sets: one merge loop each for union and intersection, linear in the ranges.
#include "common/range_set.h"

#include <algorithm>

namespace causeway {
namespace {

void append_joined(std::vector<Range>& ranges, Range range) {
    if (!ranges.empty() && range.begin <= ranges.back().end) {
        ranges.back().end = std::max(ranges.back().end, range.end);
    } else {
        ranges.push_back(range);
    }
}

}  // namespace

RangeSet RangeSet::all(std::uint64_t count) {
    RangeSet set;
    if (count > 0) {
        set.ranges_.push_back({0, count});
    }
    return set;
}

Result<RangeSet> RangeSet::make(std::vector<Range> ranges, std::uint64_t limit) {
    RangeSet set;
    std::uint64_t end = 0;
    for (const auto& range : ranges) {
        if (range.begin >= range.end || range.begin < end) {
            return fail(ErrorKind::invalid, "bad_ranges", "ranges must be non-empty, ascending and disjoint");
        }
        if (range.end > limit) {
            return fail(
                ErrorKind::invalid, "bad_ranges",
                "a range ends at " + std::to_string(range.end) + ", past the last element " + std::to_string(limit));
        }
        append_joined(set.ranges_, range);
        end = range.end;
    }
    return set;
}

std::uint64_t RangeSet::element_count() const {
    std::uint64_t count = 0;
    for (const auto& range : ranges_) {
        count += range.size();
    }
    return count;
}

RangeSet RangeSet::united(const RangeSet& other) const {
    std::vector<Range> sorted = ranges_;
    sorted.insert(sorted.end(), other.ranges_.begin(), other.ranges_.end());
    std::ranges::sort(sorted, {}, &Range::begin);
    RangeSet set;
    for (const auto& range : sorted) {
        append_joined(set.ranges_, range);
    }
    return set;
}

RangeSet RangeSet::intersected(const RangeSet& other) const {
    RangeSet set;
    auto a = ranges_.begin();
    auto b = other.ranges_.begin();
    while (a != ranges_.end() && b != other.ranges_.end()) {
        const Range common{std::max(a->begin, b->begin), std::min(a->end, b->end)};
        if (common.begin < common.end) {
            set.ranges_.push_back(common);
        }
        (a->end < b->end ? a : b)++;
    }
    return set;
}

}  // namespace causeway
