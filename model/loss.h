// Losses: a text ("cross-entropy smoothing=0.1 weights=1,2"), what targets it wants, and its prepared work.
//
// Cross-entropy takes a class per example; mean squared error and binary cross-entropy (several labels an example) take
// a number per output. All are means over the examples of a batch: each part of a batch divides by the whole batch's
// rows, so microbatches add up. Class weights multiply an example's loss; the mean stays one over examples.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/device.h"

namespace causeway {

enum class LossKind { cross_entropy, mean_squared_error, binary_cross_entropy };

struct LossSpec {
    LossKind kind = LossKind::cross_entropy;
    double smoothing = 0;        // cross-entropy: this share of each target is spread over all classes
    std::vector<float> weights;  // cross-entropy: one per class, empty: all 1

    bool operator==(const LossSpec&) const = default;
    /// Whether an example's target is a number per output rather than a class.
    [[nodiscard]] bool numeric() const { return kind != LossKind::cross_entropy; }
    /// Whether rows can be right or wrong: not where outputs are free numbers.
    [[nodiscard]] bool counts_correct() const { return kind != LossKind::mean_squared_error; }
    /// The fewest outputs that make sense.
    [[nodiscard]] std::int64_t least_outputs() const { return kind == LossKind::cross_entropy ? 2 : 1; }
};

/// Total.
///
/// errors   invalid `bad_loss`: no such loss (with the nearest name), or an option out of bounds
Result<LossSpec> parse_loss(std::string_view text);
/// The canonical text.
std::string to_text(const LossSpec& spec);
std::vector<std::string> loss_names();

/// A loss for one number of rows.
///
/// threads  bound to the trainer thread
class LossPlan {
public:
    struct Shape {
        std::int64_t rows;
        std::int64_t outputs;
    };
    static Result<LossPlan> prepare(PlanCache& plans, const LossSpec& spec, Shape shape, ops::Gradient gradient);

    struct Operands {
        Operand scores;
        Operand targets;   // i64[rows], or f32[rows, outputs]
        Operand weights;   // f32[outputs], read where the loss has class weights or smoothing
        Operand loss;      // f64[1]
        Operand correct;   // i64[1]; untouched by a loss that does not count
        Operand gradient;  // read only when prepared with one
    };
    Status run(const Operands& operands, double divisor);

private:
    LossSpec spec_;
    ops::Gradient gradient_ = ops::Gradient::absent;
    Plan* plan_ = nullptr;
};

}  // namespace causeway
