// One pass over the parts in the order they came, so that the first fault named is the sender's first. Form is
// checked before values: an update of another model says `shape`, not `non_finite` of some element. Nothing here
// allocates by the sender's numbers; positions are turned into tensor indices only for the message.
#include "aggregation/firewall.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "aggregation/weight.h"
#include "kernels/exact.h"

namespace causeway {
namespace {

Refusal refusal(std::string code, const TensorInfo& tensor, std::uint64_t index, const std::string& what) {
    return {std::move(code), "tensor " + tensor.name + ": " + what, tensor.name, index};
}

/// The place in the arena of the part's n-th value.
std::uint64_t element_of(const RangeSet& ranges, std::uint64_t n) {
    for (const auto& range : ranges.ranges()) {
        if (n < range.size()) {
            return range.begin + n;
        }
        n -= range.size();
    }
    return 0;
}

/// The first element of `set` that `without` lacks. set is not a subset of without.
std::uint64_t first_outside(const RangeSet& set, const RangeSet& without) {
    auto next = without.ranges().begin();
    for (const auto& range : set.ranges()) {
        auto element = range.begin;
        while (next != without.ranges().end() && next->end <= element) {
            ++next;
        }
        if (next != without.ranges().end() && next->begin <= element) {
            element = next->end;
        }
        if (element < range.end) {
            return element;
        }
    }
    return 0;
}

RangeSet own_ranges(const TensorInfo& tensor) {
    const auto range = tensor.range();
    return range.size() == 0 ? RangeSet{} : *RangeSet::make({range}, range.end);
}

/// What mostly is behind values that are no use: said with each, for the reason of a failed run is all that many read.
constexpr std::string_view if_it_diverges =
    "; if losses grew before it, training diverges: lower train.optimizer.learning_rate, or set train.clip_norm";

/// One update under examination.
class Examination {
public:
    Examination(const TensorTable& table, const FirewallRules& rules, const ArenaValues& start, std::uint32_t weight)
        : table_(table), rules_(rules), start_(start), weight_(weight), seen_(table.tensors.size()) {}

    std::optional<Refusal> check(const Update& update) {
        for (const auto& part : update.parts) {
            if (auto found = check_part(part)) {
                return found;
            }
        }
        if (auto found = check_missing()) {
            return found;
        }
        return check_norm();
    }

private:
    std::optional<Refusal> check_part(const UpdatePart& part) {
        const auto begin = part.ranges.empty() ? 0 : part.ranges.ranges().front().begin;
        const auto* tensor = part.ranges.empty() ? nullptr : table_.at(part.arena, begin);
        if (tensor == nullptr) {
            return Refusal{"unexpected_range",
                           "element " + std::to_string(begin) + " of the " + std::string(to_string(part.arena)) +
                               " arena belongs to no tensor",
                           "", begin};
        }
        if (auto found = check_form(*tensor, part)) {
            return found;
        }
        if (auto found = check_values(*tensor, part)) {
            return found;
        }
        if (rules_.norm_bound) {
            add_to_norm(part);
        }
        return std::nullopt;
    }

    // Shape before ranges: it is what a person recognises (`shape [1] != [4]`).
    std::optional<Refusal> check_form(const TensorInfo& tensor, const UpdatePart& part) {
        if (part.dtype != tensor.dtype) {
            return refusal(
                "dtype", tensor, 0,
                "dtype " + std::string(to_string(part.dtype)) + " != " + std::string(to_string(tensor.dtype)));
        }
        const auto wanted = rules_.expected[static_cast<std::size_t>(tensor.arena)].intersected(own_ranges(tensor));
        const auto count = wanted.element_count();
        if (count == 0) {
            return refusal("unexpected_range", tensor, 0, "was not asked for");
        }
        const auto shape = count == tensor.range().size() ? tensor.shape : Shape{static_cast<std::int64_t>(count)};
        if (part.shape != shape) {
            return refusal("shape", tensor, 0, "shape " + to_string(part.shape) + " != " + to_string(shape));
        }
        if (auto found = check_ranges(tensor, part.ranges, wanted)) {
            return found;
        }
        if (part.values.size() != count) {
            return refusal("shape", tensor, 0,
                           std::to_string(part.values.size()) + " values for shape " + to_string(shape));
        }
        return note_seen(tensor);
    }

    // Equality in two halves, so that the message can say which element is too much or too few.
    static std::optional<Refusal> check_ranges(const TensorInfo& tensor, const RangeSet& ranges,
                                               const RangeSet& wanted) {
        if (!wanted.contains(ranges)) {
            const auto index = first_outside(ranges, wanted) - tensor.offset;
            return refusal("unexpected_range", tensor, index,
                           "element " + std::to_string(index) + " was not asked for");
        }
        if (!ranges.contains(wanted)) {
            const auto index = first_outside(wanted, ranges) - tensor.offset;
            return refusal("missing_range", tensor, index, "element " + std::to_string(index) + " is missing");
        }
        return std::nullopt;
    }

    std::optional<Refusal> note_seen(const TensorInfo& tensor) {
        const auto index = static_cast<std::size_t>(&tensor - table_.tensors.data());
        if (seen_[index]) {
            return refusal("duplicate_range", tensor, 0, "comes twice");
        }
        seen_[index] = true;
        return std::nullopt;
    }

    // One pass without a branch per element: the largest magnitude as bits; infinity and NaN are above all finite ones.
    std::optional<Refusal> check_values(const TensorInfo& tensor, const UpdatePart& part) const {
        std::uint32_t largest = 0;
        for (const float value : part.values.view()) {
            const auto magnitude = std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
            largest = std::max(largest, magnitude);
        }
        const auto finite = largest < 0x7f800000u;
        if (finite && fits(std::bit_cast<float>(largest))) {
            return std::nullopt;
        }
        return name_value(tensor, part, finite);
    }

    [[nodiscard]] bool fits(float value) const {
        return std::abs(static_cast<double>(value)) * weight_ * rules_.cohort < exact_sum_limit;
    }

    // Only for refused updates: finds the first culprit again, one by one.
    std::optional<Refusal> name_value(const TensorInfo& tensor, const UpdatePart& part, bool all_finite) const {
        const auto wrong = [&](float v) { return all_finite ? !fits(v) : !std::isfinite(v); };
        const auto values = part.values.view();
        const auto found = std::ranges::find_if(values, wrong);
        const auto n = static_cast<std::uint64_t>(found - values.begin());
        const auto index = element_of(part.ranges, n) - tensor.offset;
        const auto what = "value " + std::to_string(*found) + " at index " + std::to_string(index);
        if (!all_finite) {
            return refusal("non_finite", tensor, index, what + " is not finite" + std::string(if_it_diverges));
        }
        return refusal("out_of_range", tensor, index,
                       what + " times weight " + std::to_string(weight_) + " is beyond what the exact sum of " +
                           std::to_string(rules_.cohort) + " members holds" + std::string(if_it_diverges));
    }

    // In double: a sum of squares of 10^9 floats would lose the small ones otherwise.
    void add_to_norm(const UpdatePart& part) {
        const auto start = start_[static_cast<std::size_t>(part.arena)];
        const auto values = part.values.view();
        std::size_t n = 0;
        for (const auto& range : part.ranges.ranges()) {
            for (auto i = range.begin; i < range.end; ++i, ++n) {
                const double from = rules_.fidelity == Fidelity::lossless ? start[i] : 0.0f;
                const double delta = static_cast<double>(values[n]) - from;
                squares_ += delta * delta;
            }
        }
    }

    std::optional<Refusal> check_missing() const {
        for (std::size_t i = 0; i < table_.tensors.size(); ++i) {
            const auto& tensor = table_.tensors[i];
            const auto wanted = rules_.expected[static_cast<std::size_t>(tensor.arena)].intersected(own_ranges(tensor));
            if (!seen_[i] && !wanted.empty()) {
                return refusal("missing_range", tensor, wanted.ranges().front().begin - tensor.offset, "is missing");
            }
        }
        return std::nullopt;
    }

    std::optional<Refusal> check_norm() const {
        if (rules_.norm_bound && !(std::sqrt(squares_) <= *rules_.norm_bound)) {
            return Refusal{"norm",
                           "the update's norm " + std::to_string(std::sqrt(squares_)) + " is above the bound " +
                               std::to_string(*rules_.norm_bound),
                           "", 0};
        }
        return std::nullopt;
    }

    const TensorTable& table_;
    const FirewallRules& rules_;
    const ArenaValues& start_;
    std::uint32_t weight_;
    std::vector<bool> seen_;
    double squares_ = 0;
};

}  // namespace

std::optional<Refusal> check_update(const TensorTable& table, const FirewallRules& rules, const ArenaValues& start,
                                    const Update& update, std::int64_t weight) {
    const auto checked = checked_weight(weight);
    if (!checked) {
        return Refusal{checked.error().code, checked.error().message, "", 0};
    }
    return Examination(table, rules, start, *checked).check(update);
}

}  // namespace causeway
