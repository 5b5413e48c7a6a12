// Products in bf16 by their definition: both factors are rounded, then the plain kernel runs on them.
//
// Rounding is to nearest, ties to even, as a processor's conversion does it; a NaN stays one. Thread: any.
#include <bit>
#include <cmath>
#include <vector>

#include "kernels/kinds.h"
#include "kernels/reference/kernels.h"

namespace causeway::reference {
namespace {

std::vector<float> rounded(const cw_view& view) {
    const auto* values = static_cast<const float*>(view.data);
    std::vector<float> list(values, values + element_count(view));
    for (float& value : list) {
        value = to_bf16(value);
    }
    return list;
}

}  // namespace

float to_bf16(float value) {
    if (std::isnan(value)) {
        return value;
    }
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t half = 0x7fff + ((bits >> 16) & 1);  // a tie goes to the even one
    return std::bit_cast<float>((bits + half) & 0xffff0000u);
}

void bf16_product(const cw_op& op, const cw_run& run) {
    const bool of_weights = op.kind == CW_MATMUL_BACKWARD_WEIGHTS || op.kind == CW_CONVOLUTION_BACKWARD_WEIGHTS;
    const bool has_bias_gradient = of_weights && op.operand_count == 4;
    auto first = rounded(run.views[0]);
    auto second = rounded(run.views[1]);
    std::vector<cw_view> views(run.views, run.views + run.view_count);
    views[0].data = first.data();
    views[1].data = second.data();
    cw_op plain = op;
    plain.operand_count -= has_bias_gradient ? 1 : 0;
    cw_run part = run;
    part.views = views.data();
    part.view_count = plain.operand_count;
    const auto matmul = matmul_kernel(op.kind);
    (matmul != nullptr ? matmul : convolution_kernel(op.kind))(plain, part);
    if (has_bias_gradient) {
        bias_sums(run, op.integers[0] == CW_ACCUMULATE);
    }
}

}  // namespace causeway::reference
