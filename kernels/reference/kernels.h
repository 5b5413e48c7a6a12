// The reference kernels: plain loops in the order of the formulas of kernels/backend.h, sums in double, one rounding at
// the end. They are the specification that the checker holds other backends against, and are never optimised.
//
// threads  reentrant, all of them
#pragma once

#include "kernels/host.h"

namespace causeway::reference {

/// The kernel of a kind, nullptr when there is none.
HostKernel matmul_kernel(std::int32_t kind);
HostKernel activation_kernel(std::int32_t kind);
HostKernel loss_kernel(std::int32_t kind);
HostKernel optimizer_kernel(std::int32_t kind);
HostKernel vector_kernel(std::int32_t kind);
HostKernel exact_kernel(std::int32_t kind);
HostKernel convolution_kernel(std::int32_t kind);
HostKernel pooling_kernel(std::int32_t kind);
HostKernel norm_kernel(std::int32_t kind);

/// A product of any kind whose factors are bf16.
void bf16_product(const cw_op& op, const cw_run& run);
float to_bf16(float value);
/// db = column sums of dy (operands 3 and 0), the last dimension being the columns.
void bias_sums(const cw_run& run, bool adds);

}  // namespace causeway::reference
