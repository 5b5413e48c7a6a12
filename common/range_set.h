// A sorted list of [begin, end) of one arena: whole models, layers, fragments, slices and masks are all one of these.
#pragma once

#include <cstdint>
#include <vector>

#include "common/result.h"

namespace causeway {

struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool operator==(const Range&) const = default;
    [[nodiscard]] std::uint64_t size() const { return end - begin; }
};

/// Disjoint, non-empty, ascending, never touching (touching ranges are joined).
class RangeSet {
public:
    RangeSet() = default;
    /// [0, count)
    static RangeSet all(std::uint64_t count);
    /// errors  invalid: empty, descending or overlapping ranges, or an end above `limit` (bytes of a peer come here)
    static Result<RangeSet> make(std::vector<Range> ranges, std::uint64_t limit);

    [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }
    [[nodiscard]] std::uint64_t element_count() const;
    [[nodiscard]] bool empty() const { return ranges_.empty(); }
    [[nodiscard]] RangeSet united(const RangeSet& other) const;
    [[nodiscard]] RangeSet intersected(const RangeSet& other) const;
    [[nodiscard]] bool contains(const RangeSet& other) const { return intersected(other) == other; }
    bool operator==(const RangeSet&) const = default;

private:
    std::vector<Range> ranges_;
};

}  // namespace causeway
