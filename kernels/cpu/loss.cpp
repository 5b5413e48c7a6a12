// Softmax and cross-entropy: each row twice, once for the sum of its exponentials and once for its gradient.
//
// One function of a row, so a row's gradient does not depend on the batch around it. Thread: any; reentrant.
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

}  // namespace

HostKernel loss_kernel(std::int32_t kind) {
    return kind == CW_SOFTMAX_CROSS_ENTROPY ? softmax_cross_entropy : nullptr;
}

}  // namespace causeway::cpu
