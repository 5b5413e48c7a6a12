// Measuring a model on a dataset: every figure that its loss allows, all at once or slice by slice.
//
// Slices are for nodes: between two of them the trainer thread takes what is more urgent. The figures do not depend on
// how the examples were sliced. Thread: the trainer's.
#pragma once

#include "configs/batches.h"
#include "configs/figures.h"
#include "model/metrics.h"

namespace causeway {

/// Adds up what a model says of the examples of one dataset, in their order.
class FiguresSum {
public:
    /// Both must outlive it.
    FiguresSum(const Chain& chain, const Dataset& dataset);

    /// Evaluates the next `count` examples, or those that are left. `done` afterwards when none are.
    ///
    /// errors   as Trainer::predict, but for scores that are not finite: those make a loss that is none
    Status add_next(Trainer& trainer, const ModelState& state, std::uint64_t count);
    [[nodiscard]] bool done() const { return next_ >= dataset_.size(); }
    [[nodiscard]] Figures finish() const;

private:
    void add(std::uint64_t first, std::span<const float> scores, std::span<const std::int64_t> labels);

    const Chain& chain_;
    const Dataset& dataset_;
    MetricsSum classes_;
    double squares_ = 0;    // of the errors, for regression
    double distances_ = 0;  // their absolute values
    std::uint64_t next_ = 0;
    bool diverged_ = false;
};

/// errors   invalid: the dataset does not fit the chain, or has no examples; as FiguresSum
[[nodiscard]] Result<Figures> evaluate_dataset(Trainer& trainer, const Chain& chain, const ModelState& state,
                                               const Dataset& dataset);

}  // namespace causeway
