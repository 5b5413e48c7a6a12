// The losses. Softmax and cross-entropy read each row twice: for the sum of its exponentials, and for its gradient.
//
// One function of a row, so a row's gradient does not depend on the batch around it. Thread: any; reentrant.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/streaming.h"

namespace causeway::cpu {
namespace {

constexpr auto not_a_number = std::numeric_limits<double>::quiet_NaN();

std::int64_t label_at(const cw_run& run, std::int64_t b) {
    return run.views[1].dtype == CW_I64 ? operand<const std::int64_t>(run, 1)[b]
                                        : std::int64_t{operand<const std::uint32_t>(run, 1)[b]};
}

float largest_of(const float* x, std::int64_t classes) {
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t v = 0; v < classes; ++v) {
        largest = x[v] > largest ? x[v] : largest;
    }
    return largest;
}

/// Whether the label's logit is the largest, the first of equal ones. A NaN compares as false, so: never.
bool is_first_largest(const float* x, std::int64_t classes, std::int64_t label) {
    for (std::int64_t v = 0; v < classes; ++v) {
        if (!(v < label ? x[label] > x[v] : x[label] >= x[v])) {
            return false;
        }
    }
    return true;
}

/// Returns the row's loss and writes its gradient (dx may be null, or x itself).
double row_loss(const float* x, std::int64_t classes, std::int64_t label, double divisor, float* dx) {
    const double largest = largest_of(x, classes);
    const double sum = sum_of_exponentials(x, largest, classes);
    const bool known = label >= 0 && label < classes;
    const double target = known ? x[label] - largest : not_a_number;
    if (dx != nullptr) {
        scaled_exponentials(x, largest, (known ? 1 : not_a_number) / (sum * divisor), dx, classes);
        if (known) {  // its own element in double, or the subtraction would cost the digits of a confident row
            dx[label] = static_cast<float>((std::exp(target) / sum - 1) / divisor);
        }
    }
    return std::log(sum) - target;
}

void softmax_cross_entropy(const cw_op& op, const cw_run& run) {
    const auto batch = run.views[0].dims[0];
    const auto classes = run.views[0].dims[1];
    const auto* x = operand<const float>(run, 0);
    auto* dx = op.operand_count == 5 ? operand<float>(run, 4) : nullptr;
    double loss = 0;
    std::int64_t correct = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
        const auto* row = x + b * classes;
        const auto label = label_at(run, b);
        const bool known = label >= 0 && label < classes;
        correct += known && is_first_largest(row, classes, label) ? 1 : 0;
        loss += row_loss(row, classes, label, run.scalars[0], dx == nullptr ? nullptr : dx + b * classes);
    }
    *operand<double>(run, 2) = loss / run.scalars[0];
    *operand<std::int64_t>(run, 3) = correct;
}

/// What one row of the weighted loss needs besides its logits.
struct ClassWeights {
    const float* w;
    double sum;
    double smoothing;
};

/// As row_loss. The softmax is scaled by (1 - e) * w[label] + e / V * sum(w); then every class has its own target.
double weighted_row(const float* x, std::int64_t classes, std::int64_t label, const ClassWeights& weights,
                    double divisor, float* dx) {
    const double largest = largest_of(x, classes);
    const double sum = sum_of_exponentials(x, largest, classes);
    const double own = (1 - weights.smoothing) * weights.w[label];
    const double share = weights.smoothing / static_cast<double>(classes);
    const double log_sum = std::log(sum);
    double others = 0;
    for (std::int64_t v = 0; v < classes && weights.smoothing > 0; ++v) {
        others += weights.w[v] * (log_sum - (x[v] - largest));
    }
    const double loss = own * (log_sum - (x[label] - largest)) + (weights.smoothing > 0 ? share * others : 0);
    if (dx != nullptr) {
        const double scale = own + share * weights.sum;
        for (std::int64_t v = 0; v < classes; ++v) {
            const double p = std::exp(x[v] - largest) / sum;
            dx[v] = static_cast<float>((scale * p - (v == label ? own : 0.0) - share * weights.w[v]) / divisor);
        }
    }
    return loss;
}

void weighted_cross_entropy(const cw_op& op, const cw_run& run) {
    const auto batch = run.views[0].dims[0];
    const auto classes = run.views[0].dims[1];
    const auto* x = operand<const float>(run, 0);
    auto* dx = op.operand_count == 6 ? operand<float>(run, 5) : nullptr;
    ClassWeights weights{operand<const float>(run, 2), 0, run.scalars[1]};
    for (std::int64_t v = 0; v < classes; ++v) {
        weights.sum += weights.w[v];
    }
    double loss = 0;
    std::int64_t correct = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
        const auto* row = x + b * classes;
        auto* slope = dx == nullptr ? nullptr : dx + b * classes;
        const auto label = label_at(run, b);
        if (label < 0 || label >= classes) {
            loss = not_a_number;
            std::fill_n(slope, slope == nullptr ? 0 : classes, std::numeric_limits<float>::quiet_NaN());
            continue;
        }
        correct += is_first_largest(row, classes, label) ? 1 : 0;
        loss += weighted_row(row, classes, label, weights, run.scalars[0], slope);
    }
    *operand<double>(run, 3) = loss / run.scalars[0];
    *operand<std::int64_t>(run, 4) = correct;
}

void mean_squared_error(const cw_op& op, const cw_run& run) {
    const auto outputs = run.views[0].dims[1];
    const auto* x = operand<const float>(run, 0);
    const auto* t = operand<const float>(run, 1);
    auto* dx = op.operand_count == 4 ? operand<float>(run, 3) : nullptr;
    const double divisor = run.scalars[0] * static_cast<double>(outputs);
    double loss = 0;
    for (std::int64_t i = 0; i < run.views[0].dims[0] * outputs; ++i) {
        const double error = double{x[i]} - double{t[i]};
        loss += error * error;
        if (dx != nullptr) {
            dx[i] = static_cast<float>(2 * error / divisor);
        }
    }
    *operand<double>(run, 2) = outputs == 0 ? 0 : loss / divisor;
}

/// exp(-|x|) serves the loss and, for either sign of x, the sigmoid.
void binary_cross_entropy(const cw_op& op, const cw_run& run) {
    const auto outputs = run.views[0].dims[1];
    auto* dx = op.operand_count == 5 ? operand<float>(run, 4) : nullptr;
    const double divisor = run.scalars[0] * static_cast<double>(outputs);
    double loss = 0;
    std::int64_t correct = 0;
    for (std::int64_t b = 0; b < run.views[0].dims[0]; ++b) {
        bool right = true;
        for (std::int64_t i = b * outputs; i < (b + 1) * outputs; ++i) {
            const double x = operand<const float>(run, 0)[i];
            const double t = operand<const float>(run, 1)[i];
            const double e = std::exp(-std::abs(x));
            loss += (x <= 0 ? 0.0 : x) - x * t + std::log1p(e);
            right = right && (t > 0.5 ? x > 0 : x <= 0);
            if (dx != nullptr) {
                dx[i] = static_cast<float>(((x <= 0 ? e : 1.0) / (1 + e) - t) / divisor);
            }
        }
        correct += right ? 1 : 0;
    }
    *operand<double>(run, 2) = outputs == 0 ? 0 : loss / divisor;
    *operand<std::int64_t>(run, 3) = correct;
}

}  // namespace

HostKernel loss_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_SOFTMAX_CROSS_ENTROPY: return softmax_cross_entropy;
        case CW_WEIGHTED_CROSS_ENTROPY: return weighted_cross_entropy;
        case CW_MEAN_SQUARED_ERROR: return mean_squared_error;
        case CW_BINARY_CROSS_ENTROPY: return binary_cross_entropy;
        default: return nullptr;
    }
}

}  // namespace causeway::cpu
