// Softmax and cross-entropy, row by row: the largest logit is subtracted first, so that exp cannot overflow.
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

}  // namespace

HostKernel loss_kernel(std::int32_t kind) {
    return kind == CW_SOFTMAX_CROSS_ENTROPY ? softmax_cross_entropy : nullptr;
}

}  // namespace causeway::reference
