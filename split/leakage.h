// How much smashed data tells of the inputs it came from, as one number: the distance correlation of the two samples.
//
// With a_jk = |x_j - x_k| and b_jk = |y_j - y_k| (Euclidean), A and B their double-centred matrices (a_jk less the mean
// of its row, less that of its column, plus that of all), V(x, y) = sum(A_jk B_jk) / n^2, and
//     dCor(x, y) = sqrt(V(x, y) / sqrt(V(x, x) V(y, y))),
// 0 where a variance is. It is 1 for a sample and itself (or any similarity map of it), and in the limit 0 only for
// independent variables; unlike a correlation it sees relations that are not linear. On n examples of many dimensions
// even independent samples stand well above 0, so the value of paired samples is read beside that of shuffled pairs.
//
// Source: Szekely, Rizzo, Bakirov 2007, Measuring and testing dependence by correlation of distances, definition 4;
// as a measure of leakage in split learning: Vepakomma et al. 2020, NoPeek. Pure, any thread.
#pragma once

#include <cstdint>
#include <span>

namespace causeway {

/// One example after the other, all of the same width.
struct Sample {
    std::span<const float> values;  // f32[n, width]
    std::size_t width = 1;
    [[nodiscard]] std::size_t size() const { return values.size() / width; }
};

/// In [0, 1]. Both have as many examples; 0 for fewer than two.
///
/// cost   n^2 (widths of both) operations, 16 n^2 bytes
double distance_correlation(const Sample& x, const Sample& y);

/// The same with y's examples in an order drawn from the seed: what chance alone gives.
double shuffled_correlation(const Sample& x, const Sample& y, std::uint64_t seed);

}  // namespace causeway
