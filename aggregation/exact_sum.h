// The weighted sum of a round's updates over one arena; its bits do not depend on the order of arrival.
//
// kernels/exact.h has the arithmetic: products are added as integers, so addition commutes and partial sums of other
// machines combine without error. This class adds what a round needs around it: weights are summed per range, so
// updates may cover different parts of the model, and where only one contributed the mean is that contributor's bits
// (also below the resolution 2^-62): a first contribution is kept as it is and becomes limbs when a second comes.
//
//   empty --first--> single --second--> limbs        each range by itself
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/bytes.h"
#include "common/range_set.h"

namespace causeway {

/// Bounds of a partial sum that another machine made.
struct PartialLimits {
    std::uint64_t element_count = 0;
    std::uint32_t cohort = 1;   // of the round: bounds every |weight * value| by 2^52 / cohort
    std::uint32_t members = 1;  // whose updates the partial sum may hold
    std::uint32_t segments = 1 << 20;
};

/// A sum before any rounding: high * 2^-10 + low * 2^-62, with -2^51 <= low < 2^51.
struct ExactTotal {
    std::int64_t high = 0;
    std::int64_t low = 0;
};

/// cost     16 P bytes for two limbs of 8, 4 P for the first contribution until the second comes, and for the result
/// threads  reentrant; one sum is owned by one worker at a time
class ExactSum {
public:
    explicit ExactSum(std::uint64_t element_count);

    /// Adds weight * values on `ranges`. A weight of 0 adds nothing.
    ///
    /// shapes   values f32[ranges.element_count()], finite, |weight * value| * cohort < 2^52: the firewall has checked
    /// units    weight in examples, below 2^29
    /// cost     reads 20 bytes an element and writes 16 (a first contribution: reads 4, writes 4)
    void add(const RangeSet& ranges, std::span<const float> values, std::uint32_t weight);

    /// Adds all that another sum holds: bit for bit as if its contributions had come here.
    void merge(const ExactSum& other);

    /// sum / weight where anything was added, `start` elsewhere. Leaves the sum empty.
    ///
    /// shapes   start, result f32[P]
    [[nodiscard]] std::vector<float> take_mean(std::span<const float> start);

    /// The ranges whose weight is above zero.
    [[nodiscard]] RangeSet covered() const;
    /// The weight summed at one element.
    [[nodiscard]] std::uint64_t weight_at(std::uint64_t element) const;
    [[nodiscard]] std::uint64_t element_count() const { return count_; }
    /// What was summed at one element, not yet rounded: equal sums have equal limbs.
    [[nodiscard]] ExactTotal total_at(std::uint64_t element) const;

    /// Normalised bytes: equal contributions give equal bytes, in whatever order and grouping they came.
    ///
    ///   partial := "CWPS" u16 version=1, u64 element_count, u32 count, segment[count]
    ///   segment := u64 begin, u64 end, u64 weight, u8 form, values
    ///   values  := form 1 (single): f32[n]; form 2 (limbs): i64 high[n], i64 low[n]
    [[nodiscard]] Bytes partial();
    /// errors   corrupt: not a partial sum, or one that updates within `limits` cannot have made. Total.
    static Result<ExactSum> from_partial(ByteView bytes, const PartialLimits& limits);

private:
    enum class Form : std::uint8_t { empty = 0, single = 1, limbs = 2 };
    struct Segment {
        Range range;
        std::uint64_t weight = 0;
        Form form = Form::empty;
        int additions = 0;  // since the last carry
    };

    void split_at(std::uint64_t element);
    void join_equal();
    template <class Action>
    void for_each_segment(const Range& range, const Action& action);
    void add_values(Segment& segment, const float* values, std::uint64_t weight);
    void accumulate(Segment& segment, const float* values, std::uint64_t weight);
    void make_limbs(Segment& segment);
    void drop_single();
    void merge_limbs(Segment& segment, const ExactSum& other, int additions);
    void carry(Segment& segment);
    void write_segment(ByteWriter& out, const Segment& segment) const;
    Status read_segment(ByteReader& in, const PartialLimits& limits);
    Status read_single(ByteReader& in, Segment& segment, const PartialLimits& limits);
    Status read_limbs(ByteReader& in, Segment& segment, const PartialLimits& limits);

    std::uint64_t count_;
    std::vector<std::int64_t> high_;
    std::vector<std::int64_t> low_;
    std::vector<float> single_;  // empty while no segment is single
    std::vector<Segment> segments_;  // ascending, touching, from 0 to element_count()
};

}  // namespace causeway
