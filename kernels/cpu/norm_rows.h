// The vectorised passes of the norms over rows of channels, as plain functions. norms.cpp makes kinds of them.
//
// Thread: any; reentrant.
#pragma once

#include <cstddef>

namespace causeway::cpu {

/// x[count, channels], row-major.
struct Rows {
    std::size_t count;
    std::size_t channels;
};

/// One number per channel each.
struct NormChannels {
    const float* mean;
    const float* rstd;
    const float* gamma;
    const float* beta;  // read by normalise_rows only
};

/// sums[c] += sum over the rows of x[., c]
void add_columns(const float* x, Rows rows, double* sums);
/// sums[c] += sum over the rows of (x[., c] - mean[c])^2
void add_squares(const float* x, Rows rows, const double* mean, double* sums);
/// y = (x - mean) * rstd * gamma + beta
void normalise_rows(const float* x, Rows rows, const NormChannels& channels, float* y);
/// With h = (x - mean) * rstd:  sums[c] += sum of dy, products[c] += sum of dy * h
void add_products(const float* x, const float* dy, Rows rows, const NormChannels& channels, double* sums,
                  double* products);
/// dx = rstd * (dy * gamma - (sums + h * products)), sums and products already divided by their counts
void norm_slopes(const float* x, const float* dy, Rows rows, const NormChannels& channels, const float* sums,
                 const float* products, float* dx);

}  // namespace causeway::cpu
