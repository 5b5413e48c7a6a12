// Segments and limbs. A sum is cut into segments wherever updates cover different ranges; each carries its own
// weight and its own count of additions since the last carry, because only what was added to can overflow. Whole-
// model updates keep one segment for ever, so the loops over segments cost nothing there.
#include "aggregation/exact_sum.h"

#include <algorithm>
#include <cmath>

#include "kernels/exact.h"

namespace causeway {
namespace {

constexpr std::string_view magic = "CWPS";
constexpr std::uint16_t version = 1;
constexpr std::int64_t low_limit = std::int64_t{1} << 51;  // |low| after a carry

template <class T>
std::span<T> part_of(std::vector<T>& values, const Range& range) {
    return std::span(values).subspan(range.begin, range.size());
}
template <class T>
std::span<const T> part_of(const std::vector<T>& values, const Range& range) {
    return std::span(values).subspan(range.begin, range.size());
}

tl::unexpected<Error> corrupt(std::string code, std::string message) {
    return fail(ErrorKind::corrupt, std::move(code), "the partial sum " + std::move(message));
}

template <class T>
Status read_values(ByteReader& in, std::span<T> values) {
    if (values.size() > in.left() / sizeof(T)) {
        return corrupt("truncated", "ends inside its values");
    }
    TRY_ASSIGN(const auto raw, in.get_bytes(values.size_bytes()));
    std::memcpy(values.data(), raw.data(), raw.size());
    return {};
}

}  // namespace

ExactSum::ExactSum(std::uint64_t element_count) : count_(element_count) {
    if (element_count > 0) {
        segments_.push_back({{0, element_count}});
    }
}

void ExactSum::add(const RangeSet& ranges, std::span<const float> values, std::uint32_t weight) {
    ASSERT(values.size() == ranges.element_count());
    ASSERT(weight < exact_weight_limit);
    if (weight == 0) {
        return;
    }
    const float* next = values.data();
    for (const auto& range : ranges.ranges()) {
        ASSERT(range.end <= element_count());
        for_each_segment(range, [&](Segment& segment) {
            add_values(segment, next, weight);
            next += segment.range.size();
        });
    }
    drop_single();
    join_equal();
}

void ExactSum::merge(const ExactSum& other) {
    ASSERT(other.element_count() == element_count());
    for (const auto& from : other.segments_) {
        for_each_segment(from.range, [&](Segment& segment) {
            if (from.form == Form::single) {
                add_values(segment, other.single_.data() + segment.range.begin, from.weight);
            } else if (from.form == Form::limbs) {
                merge_limbs(segment, other, from.additions);
                segment.weight += from.weight;
            }
        });
    }
    drop_single();
    join_equal();
}

std::vector<float> ExactSum::take_mean(std::span<const float> start) {
    ASSERT(start.size() == element_count());
    single_.resize(count_);
    for (const auto& segment : segments_) {
        const auto& range = segment.range;
        if (segment.form == Form::empty) {
            std::ranges::copy(start.subspan(range.begin, range.size()), single_.begin() + range.begin);
        } else if (segment.form == Form::limbs) {
            exact_mean(part_of(high_, range), part_of(low_, range), static_cast<std::int64_t>(segment.weight),
                       part_of(single_, range));
        }
    }
    auto result = std::move(single_);
    *this = ExactSum(0);
    return result;
}

RangeSet ExactSum::covered() const {
    std::vector<Range> ranges;
    for (const auto& segment : segments_) {
        if (segment.form != Form::empty) {
            ranges.push_back(segment.range);
        }
    }
    auto made = RangeSet::make(std::move(ranges), element_count());
    ASSERT(made.has_value());
    return *std::move(made);
}

std::uint64_t ExactSum::weight_at(std::uint64_t element) const {
    const auto found = std::ranges::find_if(segments_, [&](const Segment& s) { return element < s.range.end; });
    ASSERT(found != segments_.end());
    return found->weight;
}

ExactTotal ExactSum::total_at(std::uint64_t element) const {
    const auto found = std::ranges::find_if(segments_, [&](const Segment& s) { return element < s.range.end; });
    ASSERT(found != segments_.end());
    ExactTotal total;
    if (found->form == Form::single) {
        const ExactTerm term{&single_[element], static_cast<std::int64_t>(found->weight)};
        exact_accumulate(std::span(&total.high, 1), std::span(&total.low, 1), std::span(&term, 1));
    } else if (found->form == Form::limbs) {
        total = {high_[element], low_[element]};
    }
    exact_carry(std::span(&total.high, 1), std::span(&total.low, 1));
    return total;
}

Bytes ExactSum::partial() {
    ByteWriter out;
    out.put_bytes(as_bytes(magic));
    out.put(version);
    out.put(element_count());
    out.put(static_cast<std::uint32_t>(segments_.size()));
    for (auto& segment : segments_) {
        carry(segment);
        write_segment(out, segment);
    }
    return out.take();
}

Result<ExactSum> ExactSum::from_partial(ByteView bytes, const PartialLimits& limits) {
    ByteReader in(bytes);
    TRY_ASSIGN(const auto found, in.get_bytes(magic.size()));
    TRY_ASSIGN(const auto number, in.get<std::uint16_t>());
    TRY_ASSIGN(const auto elements, in.get<std::uint64_t>());
    TRY_ASSIGN(const auto count, in.get<std::uint32_t>());
    if (as_text(found) != magic || number != version) {
        return corrupt("bad_magic", "does not begin with CWPS of version 1");
    }
    if (elements != limits.element_count || count > limits.segments) {
        return corrupt("wrong_size", "is of another model, or in too many pieces");
    }
    ExactSum sum(elements);
    sum.segments_.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
        TRY(sum.read_segment(in, limits));
    }
    const auto end = sum.segments_.empty() ? 0 : sum.segments_.back().range.end;
    if (end != elements || in.left() != 0) {
        return corrupt("wrong_size", "does not end with its last element");
    }
    return sum;
}

// ---------------------------------------------------------------- segments

/// Makes `element` a boundary between two segments.
void ExactSum::split_at(std::uint64_t element) {
    const auto inside = [&](const Segment& s) { return s.range.begin < element && element < s.range.end; };
    const auto found = std::ranges::find_if(segments_, inside);
    if (found == segments_.end()) {
        return;
    }
    auto tail = *found;
    found->range.end = element;
    tail.range.begin = element;
    segments_.insert(found + 1, tail);
}

/// Neighbours that can no longer be told apart become one: whole-model updates keep a sum of one segment.
void ExactSum::join_equal() {
    std::size_t kept = 0;
    for (std::size_t i = 1; i < segments_.size(); ++i) {
        auto& last = segments_[kept];
        const auto& next = segments_[i];
        if (last.weight == next.weight && last.form == next.form) {
            last.range.end = next.range.end;
            last.additions = std::max(last.additions, next.additions);
        } else {
            segments_[++kept] = next;
        }
    }
    segments_.resize(std::min(segments_.size(), kept + 1));
}

template <class Action>
void ExactSum::for_each_segment(const Range& range, const Action& action) {
    split_at(range.begin);
    split_at(range.end);
    for (auto& segment : segments_) {
        if (segment.range.begin >= range.begin && segment.range.end <= range.end) {
            action(segment);
        }
    }
}

// ---------------------------------------------------------------- values

// The first contribution is kept as floats: alone it comes out bit for bit, also below 2^-62 and for -0.
void ExactSum::add_values(Segment& segment, const float* values, std::uint64_t weight) {
    if (segment.form == Form::empty) {
        single_.resize(count_);
        std::copy_n(values, segment.range.size(), single_.begin() + segment.range.begin);
        segment.form = Form::single;
    } else {
        make_limbs(segment);
        accumulate(segment, values, weight);
    }
    segment.weight += weight;
}

// Carries first when low could overflow; a carried low counts as one addition (|low| <= 2^51).
void ExactSum::accumulate(Segment& segment, const float* values, std::uint64_t weight) {
    if (segment.additions >= exact_additions_per_carry) {
        carry(segment);
    }
    const ExactTerm term{values, static_cast<std::int64_t>(weight)};
    exact_accumulate(part_of(high_, segment.range), part_of(low_, segment.range), std::span(&term, 1));
    ++segment.additions;
}

/// From now on the segment is in limbs: what it held as single floats is added there.
void ExactSum::make_limbs(Segment& segment) {
    high_.resize(count_);
    low_.resize(count_);
    const bool was_single = segment.form == Form::single;
    segment.form = Form::limbs;
    if (was_single) {
        accumulate(segment, single_.data() + segment.range.begin, segment.weight);
    }
}

/// The memory of first contributions is wanted for others' updates until the result is made.
void ExactSum::drop_single() {
    if (std::ranges::none_of(segments_, [](const Segment& s) { return s.form == Form::single; })) {
        single_ = {};
    }
}

void ExactSum::merge_limbs(Segment& segment, const ExactSum& other, int additions) {
    make_limbs(segment);
    if (segment.additions + additions > exact_additions_per_carry) {
        carry(segment);  // at most 1 + 2,048 additions then: low stays below 2^63
    }
    exact_merge(part_of(high_, segment.range), part_of(low_, segment.range), part_of(other.high_, segment.range),
                part_of(other.low_, segment.range));
    segment.additions += additions;
}

void ExactSum::carry(Segment& segment) {
    if (segment.form == Form::limbs) {
        exact_carry(part_of(high_, segment.range), part_of(low_, segment.range));
        segment.additions = 1;
    }
}

// ---------------------------------------------------------------- partial sums

void ExactSum::write_segment(ByteWriter& out, const Segment& segment) const {
    out.put(segment.range.begin);
    out.put(segment.range.end);
    out.put(segment.weight);
    out.put(static_cast<std::uint8_t>(segment.form));
    if (segment.form == Form::single) {
        out.put_bytes(std::as_bytes(part_of(single_, segment.range)));
    } else if (segment.form == Form::limbs) {
        out.put_bytes(std::as_bytes(part_of(high_, segment.range)));
        out.put_bytes(std::as_bytes(part_of(low_, segment.range)));
    }
}

Status ExactSum::read_segment(ByteReader& in, const PartialLimits& limits) {
    Segment segment;
    TRY_ASSIGN(segment.range.begin, in.get<std::uint64_t>());
    TRY_ASSIGN(segment.range.end, in.get<std::uint64_t>());
    TRY_ASSIGN(segment.weight, in.get<std::uint64_t>());
    TRY_ASSIGN(const auto form, in.get<std::uint8_t>());
    const auto begin = segments_.empty() ? 0 : segments_.back().range.end;
    if (segment.range.begin != begin || segment.range.end <= begin || segment.range.end > element_count() ||
        form > static_cast<std::uint8_t>(Form::limbs)) {
        return corrupt("bad_segment", "has a segment out of order or of an unknown form");
    }
    segment.form = static_cast<Form>(form);
    if (segment.form == Form::single) {
        TRY(read_single(in, segment, limits));
    } else if (segment.form == Form::limbs) {
        TRY(read_limbs(in, segment, limits));
    } else if (segment.weight != 0) {
        return corrupt("bad_weight", "has weight where nothing was added");
    }
    segments_.push_back(segment);
    return {};
}

// The bounds of the firewall again: a partial sum is another machine's word.
Status ExactSum::read_single(ByteReader& in, Segment& segment, const PartialLimits& limits) {
    single_.resize(count_);
    TRY(read_values(in, part_of(single_, segment.range)));
    if (segment.weight == 0 || segment.weight >= static_cast<std::uint64_t>(exact_weight_limit)) {
        return corrupt("bad_weight", "has a single contribution of a weight outside [1, 2^29)");
    }
    const double scale = static_cast<double>(segment.weight) * limits.cohort;
    const auto fits = [&](float v) { return std::abs(static_cast<double>(v)) * scale < exact_sum_limit; };
    if (!std::ranges::all_of(part_of(single_, segment.range), fits)) {  // NaN does not fit either
        return corrupt("out_of_range", "holds a value that is not finite or too large");
    }
    return {};
}

// At most members x 2^62 / cohort in high, so merging all partial sums of a round stays below 2^62; low is carried.
Status ExactSum::read_limbs(ByteReader& in, Segment& segment, const PartialLimits& limits) {
    const auto most_weight = static_cast<std::uint64_t>(exact_weight_limit) * limits.members;
    if (segment.weight < 2 || segment.weight >= most_weight) {
        return corrupt("bad_weight", "has a weight that its members cannot have");
    }
    if (segment.range.size() > in.left() / (2 * sizeof(std::int64_t))) {
        return corrupt("truncated", "ends inside its values");
    }
    high_.resize(count_);
    low_.resize(count_);
    const auto high = part_of(high_, segment.range);
    const auto low = part_of(low_, segment.range);
    TRY(read_values(in, high));
    TRY(read_values(in, low));
    const auto per_member = (std::int64_t{1} << 62) / std::max(limits.cohort, 1u) + 1;
    const auto most = per_member * static_cast<std::int64_t>(std::min(limits.members, limits.cohort));
    if (!std::ranges::all_of(high, [&](std::int64_t h) { return -most <= h && h <= most; }) ||
        !std::ranges::all_of(low, [](std::int64_t l) { return -low_limit <= l && l < low_limit; })) {
        return corrupt("out_of_range", "holds a limb that is too large or not carried");
    }
    segment.additions = 1;
    return {};
}

}  // namespace causeway
