// The losses, row by row. Softmax: the largest logit is subtracted first, so that exp cannot overflow.
//
// All sums in double, in the order of the elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/kernels.h"

namespace causeway::reference {
namespace {

std::int64_t label_at(const cw_run& run, std::int64_t b) {
    return run.views[1].dtype == CW_I64 ? operand<const std::int64_t>(run, 1)[b]
                                        : std::int64_t{operand<const std::uint32_t>(run, 1)[b]};
}

struct Row {
    const float* x;
    std::int64_t classes;
    double largest = -std::numeric_limits<double>::infinity();
    double sum = 0;  // of exp(x - largest)

    Row(const float* logits, std::int64_t count) : x(logits), classes(count) {
        for (std::int64_t v = 0; v < classes; ++v) {
            largest = x[v] > largest ? double{x[v]} : largest;
        }
        for (std::int64_t v = 0; v < classes; ++v) {
            sum += std::exp(x[v] - largest);
        }
    }
    double probability(std::int64_t v) const { return std::exp(x[v] - largest) / sum; }
    bool is_first_largest(std::int64_t label) const {
        bool yes = true;
        for (std::int64_t v = 0; v < classes; ++v) {
            yes = yes && (v < label ? x[label] > x[v] : x[label] >= x[v]);
        }
        return yes;
    }
};

void write_gradient(const Row& row, std::int64_t label, bool known, double divisor, float* dx) {
    for (std::int64_t v = 0; v < row.classes; ++v) {
        const double target = v == label ? 1.0 : 0.0;
        const double slope = (row.probability(v) - target) / divisor;
        dx[v] = known ? static_cast<float>(slope) : std::numeric_limits<float>::quiet_NaN();
    }
}

void softmax_cross_entropy(const cw_op& op, const cw_run& run) {
    const auto batch = run.views[0].dims[0];
    const auto classes = run.views[0].dims[1];
    double loss = 0;
    std::int64_t correct = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
        const auto label = label_at(run, b);
        const bool known = label >= 0 && label < classes;
        // In place, the gradient overwrites the row: everything else of it is read before.
        const std::vector<float> copy(operand<const float>(run, 0) + b * classes,
                                      operand<const float>(run, 0) + (b + 1) * classes);
        const Row row(copy.data(), classes);
        loss += known ? std::log(row.sum) - (row.x[label] - row.largest) : std::numeric_limits<double>::quiet_NaN();
        correct += known && row.is_first_largest(label) ? 1 : 0;
        if (op.operand_count == 5) {
            write_gradient(row, label, known, run.scalars[0], operand<float>(run, 4) + b * classes);
        }
    }
    *operand<double>(run, 2) = loss / run.scalars[0];
    *operand<std::int64_t>(run, 3) = correct;
}

/// The derivative of one row's smoothed and weighted loss, and the loss itself.
double weighted_row(const Row& row, const float* w, std::int64_t label, double smoothing, double divisor, float* dx) {
    double all_weights = 0;
    double others = 0;  // sum of w * -log p
    for (std::int64_t v = 0; v < row.classes; ++v) {
        all_weights += w[v];
        others += w[v] * (std::log(row.sum) - (row.x[v] - row.largest));
    }
    const double own = (1 - smoothing) * w[label];
    const double share = smoothing / static_cast<double>(row.classes);
    for (std::int64_t v = 0; v < row.classes && dx != nullptr; ++v) {
        const double target = v == label ? 1.0 : 0.0;
        const double p = row.probability(v);
        dx[v] = static_cast<float>((own * (p - target) + share * (all_weights * p - w[v])) / divisor);
    }
    return own * (std::log(row.sum) - (row.x[label] - row.largest)) + (smoothing > 0 ? share * others : 0);
}

void weighted_cross_entropy(const cw_op& op, const cw_run& run) {
    const auto batch = run.views[0].dims[0];
    const auto classes = run.views[0].dims[1];
    auto* dx = op.operand_count == 6 ? operand<float>(run, 5) : nullptr;
    double loss = 0;
    std::int64_t correct = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
        const auto label = label_at(run, b);
        const std::vector<float> copy(operand<const float>(run, 0) + b * classes,
                                      operand<const float>(run, 0) + (b + 1) * classes);
        const Row row(copy.data(), classes);
        auto* slope = dx == nullptr ? nullptr : dx + b * classes;
        if (label < 0 || label >= classes) {
            loss = std::numeric_limits<double>::quiet_NaN();
            std::fill_n(slope, slope == nullptr ? 0 : classes, std::numeric_limits<float>::quiet_NaN());
            continue;
        }
        correct += row.is_first_largest(label) ? 1 : 0;
        loss += weighted_row(row, operand<const float>(run, 2), label, run.scalars[1], run.scalars[0], slope);
    }
    *operand<double>(run, 3) = loss / run.scalars[0];
    *operand<std::int64_t>(run, 4) = correct;
}

void mean_squared_error(const cw_op& op, const cw_run& run) {
    const auto outputs = run.views[0].dims[1];
    const double divisor = run.scalars[0] * static_cast<double>(outputs);
    double loss = 0;
    for (std::int64_t i = 0; i < run.views[0].dims[0] * outputs; ++i) {
        const double error = double{operand<const float>(run, 0)[i]} - double{operand<const float>(run, 1)[i]};
        loss += error * error;
        if (op.operand_count == 4) {
            operand<float>(run, 3)[i] = static_cast<float>(2 * error / divisor);
        }
    }
    *operand<double>(run, 2) = outputs == 0 ? 0 : loss / divisor;
}

void binary_cross_entropy(const cw_op& op, const cw_run& run) {
    const auto outputs = run.views[0].dims[1];
    const double divisor = run.scalars[0] * static_cast<double>(outputs);
    double loss = 0;
    std::int64_t correct = 0;
    for (std::int64_t b = 0; b < run.views[0].dims[0]; ++b) {
        bool right = true;
        for (std::int64_t i = b * outputs; i < (b + 1) * outputs; ++i) {
            const double x = operand<const float>(run, 0)[i];
            const double t = operand<const float>(run, 1)[i];
            loss += (std::isnan(x) || x > 0 ? x : 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
            right = right && (t > 0.5 ? x > 0 : x <= 0);
            if (op.operand_count == 5) {
                operand<float>(run, 4)[i] = static_cast<float>((1 / (1 + std::exp(-x)) - t) / divisor);
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

}  // namespace causeway::reference
