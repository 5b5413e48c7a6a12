// From operands of a run to the arguments of the vectorised kernels, one adapter per streaming kind.
//
// Here the scalars of a step become the floats that the element-wise arithmetic uses, computed in double and rounded
// once, as PyTorch does. Thread: any; reentrant.
#include "kernels/cpu/streaming.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "common/random.h"
#include "kernels/cpu/kernels.h"

namespace causeway::cpu {
namespace {

const float* in(const cw_run& run, int index) { return operand<const float>(run, index); }
float* out(const cw_run& run, int index) { return operand<float>(run, index); }
std::int64_t* limb(const cw_run& run, int index) { return operand<std::int64_t>(run, index); }
std::size_t size(const cw_run& run) { return static_cast<std::size_t>(length(run, 0)); }
float scalar(const cw_run& run, int index) { return static_cast<float>(run.scalars[index]); }

void run_relu(const cw_op&, const cw_run& run) { relu(in(run, 0), out(run, 1), size(run)); }
void run_relu_backward(const cw_op&, const cw_run& run) {
    relu_backward(in(run, 0), in(run, 1), out(run, 2), size(run));
}
void run_gelu(const cw_op&, const cw_run& run) { gelu(in(run, 0), out(run, 1), size(run)); }
void run_gelu_backward(const cw_op&, const cw_run& run) {
    gelu_backward(in(run, 0), in(run, 1), out(run, 2), size(run));
}

void run_silu(const cw_op&, const cw_run& run) { silu(in(run, 0), out(run, 1), size(run)); }
void run_silu_backward(const cw_op&, const cw_run& run) {
    silu_backward(in(run, 0), in(run, 1), out(run, 2), size(run));
}

/// A block of four numbers at a time; the first block may begin before the first element.
void run_dropout(const cw_op&, const cw_run& run) {
    const double rate = run.scalars[0];
    const double threshold = rate * 0x1p32;
    const std::array key{static_cast<std::uint32_t>(run.scalars[1]), static_cast<std::uint32_t>(run.scalars[2])};
    const auto first = static_cast<std::uint64_t>(run.scalars[3]);
    const auto end = first + size(run);
    const auto* x = in(run, 0);
    auto* y = out(run, 1);
    for (auto block = first / 4; block * 4 < end; ++block) {
        const auto words =
            philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}, key);
        for (auto e = std::max(first, block * 4); e < std::min(end, block * 4 + 4); ++e) {
            const bool keeps = words[e % 4] >= threshold;
            y[e - first] = keeps ? static_cast<float>(x[e - first] / (1 - rate)) : 0.0f;
        }
    }
}

void run_sgd(const cw_op& op, const cw_run& run) {
    const SgdStep step{.rate = scalar(run, 0),
                       .momentum = scalar(run, 1),
                       .undampened = static_cast<float>(1 - run.scalars[2]),
                       .decay = scalar(run, 3),
                       .first = run.scalars[4] == 1,
                       .nesterov = op.integers[0] == 1};
    sgd(step, out(run, 0), in(run, 1), op.operand_count == 3 ? out(run, 2) : nullptr, size(run));
}

void run_adamw(const cw_op&, const cw_run& run) {
    const double rate = run.scalars[0];
    const double beta1 = run.scalars[1];
    const double beta2 = run.scalars[2];
    const double t = run.scalars[5];
    const AdamwStep step{.keep = static_cast<float>(1 - rate * run.scalars[4]),
                         .step_size = static_cast<float>(rate / (1 - std::pow(beta1, t))),
                         .beta1 = static_cast<float>(beta1),
                         .rest1 = static_cast<float>(1 - beta1),
                         .beta2 = static_cast<float>(beta2),
                         .rest2 = static_cast<float>(1 - beta2),
                         .correction = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t))),
                         .epsilon = scalar(run, 3)};
    adamw(step, out(run, 0), in(run, 1), out(run, 2), out(run, 3), size(run));
}

void run_adam(const cw_op&, const cw_run& run) {
    const AdamStep step{.keep = scalar(run, 0), .l2 = scalar(run, 1), .beta1 = scalar(run, 2),
                        .rest1 = static_cast<float>(1 - run.scalars[2]), .beta2 = scalar(run, 3),
                        .rest2 = static_cast<float>(1 - run.scalars[3]), .own = scalar(run, 4),
                        .moment = scalar(run, 5), .correction = scalar(run, 6), .epsilon = scalar(run, 7)};
    adam(step, out(run, 0), in(run, 1), out(run, 2), out(run, 3), size(run));
}

void run_axpy(const cw_op&, const cw_run& run) { axpy(scalar(run, 0), in(run, 0), out(run, 1), size(run)); }
void run_scale(const cw_op&, const cw_run& run) { scale(scalar(run, 0), out(run, 0), size(run)); }
void run_sum_of_squares(const cw_op&, const cw_run& run) {
    *operand<double>(run, 1) = sum_of_squares(in(run, 0), size(run));
}
void run_fill(const cw_op&, const cw_run& run) { std::fill_n(out(run, 0), size(run), scalar(run, 0)); }
void run_copy(const cw_op&, const cw_run& run) { std::copy_n(in(run, 0), size(run), out(run, 1)); }

void run_exact_add(const cw_op&, const cw_run& run) {
    ExactPass pass{};
    for (; pass.count + 2 < run.view_count; ++pass.count) {
        pass.values[pass.count] = in(run, pass.count + 2);
        pass.weights[pass.count] = run.scalars[pass.count];
    }
    exact_add(pass, limb(run, 0), limb(run, 1), size(run));
}
void run_exact_carry(const cw_op&, const cw_run& run) { exact_carry(limb(run, 0), limb(run, 1), size(run)); }
void run_exact_mean(const cw_op&, const cw_run& run) {
    exact_mean(limb(run, 0), limb(run, 1), run.scalars[0], out(run, 2), size(run));
}

}  // namespace

HostKernel streaming_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_RELU: return run_relu;
        case CW_RELU_BACKWARD: return run_relu_backward;
        case CW_GELU: return run_gelu;
        case CW_GELU_BACKWARD: return run_gelu_backward;
        case CW_SILU: return run_silu;
        case CW_SILU_BACKWARD: return run_silu_backward;
        case CW_DROPOUT: return run_dropout;
        case CW_SGD: return run_sgd;
        case CW_ADAMW: return run_adamw;
        case CW_ADAM: return run_adam;
        case CW_AXPY: return run_axpy;
        case CW_SCALE: return run_scale;
        case CW_SUM_OF_SQUARES: return run_sum_of_squares;
        case CW_FILL: return run_fill;
        case CW_COPY: return run_copy;
        case CW_EXACT_ADD: return run_exact_add;
        case CW_EXACT_CARRY: return run_exact_carry;
        case CW_EXACT_MEAN: return run_exact_mean;
        default: return nullptr;
    }
}

}  // namespace causeway::cpu
