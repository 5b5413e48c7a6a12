// Exact sums in the plainest form: the product in double, its two limbs by rint, the mean through a 128-bit integer.
//
// kernels/exact.h has the arithmetic and its limits.
#include <cmath>

#include "kernels/reference/kernels.h"

namespace causeway::reference {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t low_per_high = std::int64_t{1} << 52;

void add(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        for (std::int32_t k = 0; k + 2 < run.view_count; ++k) {
            const double product = run.scalars[k] * operand<const float>(run, k + 2)[i];
            const double high = std::rint(product * 0x1p10);
            const double low = std::rint((product - high * 0x1p-10) * 0x1p62);
            operand<std::int64_t>(run, 0)[i] += static_cast<std::int64_t>(high);
            operand<std::int64_t>(run, 1)[i] += static_cast<std::int64_t>(low);
        }
    }
}

void carry(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        auto& low = operand<std::int64_t>(run, 1)[i];
        const auto carried = (low + low_per_high / 2) >> 52;  // rounds down: low ends in [-2^51, 2^51)
        operand<std::int64_t>(run, 0)[i] += carried;
        low -= carried * low_per_high;
    }
}

void mean(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        const Wide high = operand<const std::int64_t>(run, 0)[i];
        const auto sum = static_cast<double>(high * low_per_high + operand<const std::int64_t>(run, 1)[i]);
        operand<float>(run, 2)[i] = static_cast<float>(sum * 0x1p-62 / run.scalars[0]);
    }
}

}  // namespace

HostKernel exact_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_EXACT_ADD: return add;
        case CW_EXACT_CARRY: return carry;
        case CW_EXACT_MEAN: return mean;
        default: return nullptr;
    }
}

}  // namespace causeway::reference
