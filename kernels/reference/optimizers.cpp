// One step of SGD, of AdamW and of Adam's family as PyTorch defines them (torch.optim, without amsgrad).
//
// Arithmetic in double; what is kept between steps (theta, m, v) is rounded to float, and the step uses the rounded m.
#include <cmath>

#include "kernels/reference/kernels.h"

namespace causeway::reference {
namespace {

void sgd(const cw_op& op, const cw_run& run) {
    const double rate = run.scalars[0];
    const double momentum = run.scalars[1];
    const double dampening = run.scalars[2];
    const double decay = run.scalars[3];
    const bool first = run.scalars[4] == 1;
    auto* theta = operand<float>(run, 0);
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        double g = operand<const float>(run, 1)[i];
        g = decay != 0 ? g + decay * theta[i] : g;
        if (op.operand_count == 3) {
            float& m = operand<float>(run, 2)[i];
            m = static_cast<float>(first ? g : momentum * m + (1 - dampening) * g);
            g = op.integers[0] == 1 ? g + momentum * m : double{m};
        }
        theta[i] = static_cast<float>(theta[i] - rate * g);
    }
}

void adamw(const cw_op&, const cw_run& run) {
    const double rate = run.scalars[0];
    const double beta1 = run.scalars[1];
    const double beta2 = run.scalars[2];
    const double epsilon = run.scalars[3];
    const double decay = run.scalars[4];
    const double step = run.scalars[5];
    const double step_size = rate / (1 - std::pow(beta1, step));
    const double root = std::sqrt(1 - std::pow(beta2, step));
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        float& theta = operand<float>(run, 0)[i];
        const double g = operand<const float>(run, 1)[i];
        float& m = operand<float>(run, 2)[i];
        float& v = operand<float>(run, 3)[i];
        m = static_cast<float>(beta1 * m + (1 - beta1) * g);
        v = static_cast<float>(beta2 * v + (1 - beta2) * g * g);
        const double change = step_size * m / (std::sqrt(double{v}) / root + epsilon);
        theta = static_cast<float>(theta * (1 - rate * decay) - change);
    }
}

void adam(const cw_op&, const cw_run& run) {
    const auto* s = run.scalars;
    const double keep = s[0], l2 = s[1], beta1 = s[2], beta2 = s[3];
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        float& theta = operand<float>(run, 0)[i];
        float& m = operand<float>(run, 2)[i];
        float& v = operand<float>(run, 3)[i];
        double g = operand<const float>(run, 1)[i];
        g = l2 != 0 ? g + l2 * theta : g;
        m = static_cast<float>(beta1 * m + (1 - beta1) * g);
        v = static_cast<float>(beta2 * v + (1 - beta2) * g * g);
        const double direction = (s[4] != 0 ? s[4] * g : 0.0) + s[5] * m;
        theta = static_cast<float>(keep * theta - direction / (std::sqrt(double{v}) * s[6] + s[7]));
    }
}

}  // namespace

HostKernel optimizer_kernel(std::int32_t kind) {
    return kind == CW_SGD ? sgd : kind == CW_ADAMW ? adamw : kind == CW_ADAM ? adam : nullptr;
}

}  // namespace causeway::reference
