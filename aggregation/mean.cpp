// With lossless codecs the mean of theta_local is the next model; with lossy ones the mean of the deltas is added to
// the start. Ranges that nobody covered keep their start. Each arena has a sum of its own; a round's sums live as long
// as the object, and one division ends them.
#include "aggregation/mean.h"

#include <algorithm>

#include "aggregation/exact_sum.h"

namespace causeway {
namespace {

constexpr std::size_t arena_count = 3;

class MeanAggregation final : public Aggregation {
public:
    explicit MeanAggregation(AggregationSetup setup) : setup_(std::move(setup)) {
        for (std::size_t kind = 0; kind < arena_count; ++kind) {
            sums_.emplace_back(setup_.expected[kind].empty() ? 0 : setup_.start[kind].size());
        }
    }

    void add(const Update& update, std::uint32_t weight) override {
        for (const auto& part : update.parts) {
            sums_[static_cast<std::size_t>(part.arena)].add(part.ranges, part.values.view(), weight);
        }
    }

    Result<AggregationResult> finish(UpdateSource*) override {
        if (nothing_came()) {
            return fail(
                ErrorKind::invalid, "zero_total_weight",
                "no update of the round has weight: every member reported 0 examples; the model stays as it is");
        }
        AggregationResult result;
        for (std::size_t kind = 0; kind < arena_count; ++kind) {
            if (sums_[kind].element_count() > 0) {
                result.arenas[kind] = next_values(sums_[kind], setup_.start[kind]);
            }
        }
        result.state = std::move(setup_.state);
        return result;
    }

private:
    [[nodiscard]] bool nothing_came() const {
        return std::ranges::all_of(sums_, [](const ExactSum& sum) { return sum.covered().empty(); });
    }

    [[nodiscard]] std::vector<float> next_values(ExactSum& sum, std::span<const float> start) const {
        if (setup_.fidelity == Fidelity::lossless) {
            return sum.take_mean(start);
        }
        const auto covered = sum.covered();
        auto values = sum.take_mean(start);
        for (const auto& range : covered.ranges()) {
            for (auto i = range.begin; i < range.end; ++i) {
                values[i] += start[i];
            }
        }
        return values;
    }

    AggregationSetup setup_;
    std::vector<ExactSum> sums_;
};

Result<Aggregator> parse_mean(std::string_view arguments, const CohortFacts&) {
    if (!arguments.empty()) {
        return fail(ErrorKind::invalid, "aggregator_arguments",
                    "the aggregator mean takes no arguments, not '" + std::string(arguments) + "'");
    }
    return Aggregator{"mean", AggregatorNeeds::running_sum,
                      [](AggregationSetup setup) { return std::make_unique<MeanAggregation>(std::move(setup)); }};
}

}  // namespace

AggregatorEntry mean_aggregator() {
    return {"mean", "mean weighted by examples, exact in any order", AggregatorNeeds::running_sum, parse_mean};
}

}  // namespace causeway
