// relu, the exact gelu and silu, forward and backward, with the C library's erfc and exp in double.
//
// erfc(-z) instead of 1 + erf(z): the left tail keeps its relative precision.
#include <cmath>
#include <numbers>

#include "kernels/reference/kernels.h"

namespace causeway::reference {
namespace {

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double normal_density(double x) { return std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2; }

void relu(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        const float x = operand<const float>(run, 0)[i];
        operand<float>(run, 1)[i] = x > 0 || std::isnan(x) ? x : 0.0f;
    }
}

void relu_backward(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        const float x = operand<const float>(run, 0)[i];
        operand<float>(run, 2)[i] = x > 0 ? operand<const float>(run, 1)[i] : 0.0f;
    }
}

void gelu(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        const double x = operand<const float>(run, 0)[i];
        operand<float>(run, 1)[i] = static_cast<float>(x * normal_cdf(x));
    }
}

void gelu_backward(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        const double x = operand<const float>(run, 0)[i];
        const double dy = operand<const float>(run, 1)[i];
        operand<float>(run, 2)[i] = static_cast<float>(dy * (normal_cdf(x) + x * normal_density(x)));
    }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void silu(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        const double x = operand<const float>(run, 0)[i];
        operand<float>(run, 1)[i] = static_cast<float>(x * sigmoid(x));
    }
}

void silu_backward(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        const double x = operand<const float>(run, 0)[i];
        const double s = sigmoid(x);
        operand<float>(run, 2)[i] = static_cast<float>(operand<const float>(run, 1)[i] * (s * (1 + x * (1 - s))));
    }
}

}  // namespace

HostKernel activation_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_RELU: return relu;
        case CW_RELU_BACKWARD: return relu_backward;
        case CW_GELU: return gelu;
        case CW_GELU_BACKWARD: return gelu_backward;
        case CW_SILU: return silu;
        case CW_SILU_BACKWARD: return silu_backward;
        default: return nullptr;
    }
}

}  // namespace causeway::reference
