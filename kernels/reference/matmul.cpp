// The three products of a dense layer: y = x w^T + b, dx = dy w, dw = dy^T x with db = column sums of dy.
//
// Each element is one sum in double, from the first term to the last, rounded once to float.
#include "kernels/kinds.h"
#include "kernels/reference/kernels.h"

namespace causeway::reference {
namespace {

void matmul_forward(const cw_op& op, const cw_run& run) {
    const bool has_bias = op.operand_count == 4;
    const auto batch = run.views[0].dims[0];
    const auto inputs = run.views[0].dims[1];
    const auto outputs = run.views[1].dims[0];
    const auto* x = operand<const float>(run, 0);
    const auto* w = operand<const float>(run, 1);
    auto* y = operand<float>(run, has_bias ? 3 : 2);
    for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t o = 0; o < outputs; ++o) {
            double sum = has_bias ? double{operand<const float>(run, 2)[o]} : 0.0;
            for (std::int64_t i = 0; i < inputs; ++i) {
                sum += double{x[b * inputs + i]} * double{w[o * inputs + i]};
            }
            y[b * outputs + o] = static_cast<float>(sum);
        }
    }
}

void matmul_backward_data(const cw_op&, const cw_run& run) {
    const auto batch = run.views[0].dims[0];
    const auto outputs = run.views[0].dims[1];
    const auto inputs = run.views[1].dims[1];
    const auto* dy = operand<const float>(run, 0);
    const auto* w = operand<const float>(run, 1);
    auto* dx = operand<float>(run, 2);
    for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t i = 0; i < inputs; ++i) {
            double sum = 0;
            for (std::int64_t o = 0; o < outputs; ++o) {
                sum += double{dy[b * outputs + o]} * double{w[o * inputs + i]};
            }
            dx[b * inputs + i] = static_cast<float>(sum);
        }
    }
}

void matmul_backward_weights(const cw_op& op, const cw_run& run) {
    const bool adds = op.integers[0] == CW_ACCUMULATE;
    const auto batch = run.views[0].dims[0];
    const auto outputs = run.views[0].dims[1];
    const auto inputs = run.views[1].dims[1];
    const auto* dy = operand<const float>(run, 0);
    const auto* x = operand<const float>(run, 1);
    auto* dw = operand<float>(run, 2);
    for (std::int64_t o = 0; o < outputs; ++o) {
        for (std::int64_t i = 0; i < inputs; ++i) {
            double sum = adds ? double{dw[o * inputs + i]} : 0.0;
            for (std::int64_t b = 0; b < batch; ++b) {
                sum += double{dy[b * outputs + o]} * double{x[b * inputs + i]};
            }
            dw[o * inputs + i] = static_cast<float>(sum);
        }
    }
    if (op.operand_count == 4) {
        bias_sums(run, adds);
    }
}

}  // namespace

void bias_sums(const cw_run& run, bool adds) {
    const auto& dy = run.views[0];
    const auto columns = dy.dims[dy.rank - 1];
    const auto count = element_count(dy);
    auto* db = operand<float>(run, 3);
    for (std::int64_t o = 0; o < columns; ++o) {
        double sum = adds ? double{db[o]} : 0.0;
        for (std::int64_t i = o; i < count; i += columns) {
            sum += double{operand<const float>(run, 0)[i]};
        }
        db[o] = static_cast<float>(sum);
    }
}

HostKernel matmul_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_MATMUL:
            return matmul_forward;
        case CW_MATMUL_BACKWARD_DATA:
            return matmul_backward_data;
        case CW_MATMUL_BACKWARD_WEIGHTS:
            return matmul_backward_weights;
        default: return nullptr;
    }
}

}  // namespace causeway::reference
