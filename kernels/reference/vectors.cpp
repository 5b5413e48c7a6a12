// axpy, scale, fill, copy, dropout and the sum of squares.
//
// axpy and scale round a to float and then each operation, because their result must be the same bits everywhere; so
// does the sum of squares, whose 32 partial sums are part of its definition: lane i mod 32 takes x[i]^2 in order, and
// the lanes are halved: lane j += lane j + 16, then 8, 4, 2, 1.
#include <array>

#include "common/random.h"
#include "kernels/reference/kernels.h"

namespace causeway::reference {
namespace {

void axpy(const cw_op&, const cw_run& run) {
    const auto a = static_cast<float>(run.scalars[0]);
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        operand<float>(run, 1)[i] = a * operand<const float>(run, 0)[i] + operand<float>(run, 1)[i];
    }
}

void scale(const cw_op&, const cw_run& run) {
    const auto a = static_cast<float>(run.scalars[0]);
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        operand<float>(run, 0)[i] *= a;
    }
}

void sum_of_squares(const cw_op&, const cw_run& run) {
    std::array<double, 32> lanes{};
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        const double x = operand<const float>(run, 0)[i];
        lanes[i % 32] += x * x;
    }
    for (std::size_t half = 16; half > 0; half /= 2) {
        for (std::size_t j = 0; j < half; ++j) {
            lanes[j] += lanes[j + half];
        }
    }
    *operand<double>(run, 1) = lanes[0];
}

void fill(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        operand<float>(run, 0)[i] = static_cast<float>(run.scalars[0]);
    }
}

void copy(const cw_op&, const cw_run& run) {
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        operand<float>(run, 1)[i] = operand<const float>(run, 0)[i];
    }
}

void dropout(const cw_op&, const cw_run& run) {
    const double rate = run.scalars[0];
    const std::array key{static_cast<std::uint32_t>(run.scalars[1]), static_cast<std::uint32_t>(run.scalars[2])};
    const auto first = static_cast<std::uint64_t>(run.scalars[3]);
    for (std::int64_t i = 0; i < length(run, 0); ++i) {
        const auto e = first + static_cast<std::uint64_t>(i);
        const auto block = e / 4;
        const auto words =
            philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}, key);
        const bool keeps = words[e % 4] >= rate * 0x1p32;
        const double x = operand<const float>(run, 0)[i];
        operand<float>(run, 1)[i] = keeps ? static_cast<float>(x / (1 - rate)) : 0.0f;
    }
}

}  // namespace

HostKernel vector_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_AXPY: return axpy;
        case CW_SCALE: return scale;
        case CW_SUM_OF_SQUARES: return sum_of_squares;
        case CW_FILL: return fill;
        case CW_COPY: return copy;
        case CW_DROPOUT: return dropout;
        default: return nullptr;
    }
}

}  // namespace causeway::reference
