// Exact weighted sums: additions that commute, so that neither the order nor the grouping of updates shows in the bits.
//
// Per element two 64-bit limbs: high in units of 2^-10, low in units of 2^-62. weight * value has at most 29 + 24 bits
// and is exact in double; high takes the nearest multiple of its unit, low the rest (|rest| <= 2^-11, 2^51 units). Only
// the bits of a product below 2^-62 are rounded, each product by itself, hence still in no order.
// The kernels of the cpu backend, callable without a device: workers and tests use them. Equal bits on every
// instruction set. Thread: any; reentrant.
#pragma once

#include <cstdint>
#include <span>

namespace causeway {

constexpr std::int64_t exact_weight_limit = std::int64_t{1} << 29;  // weights are below it
constexpr double exact_sum_limit = 0x1p52;     // |weight * value| * additions stays below it, so high < 2^62
constexpr int exact_additions_per_carry = 2048;  // 2048 * 2^51 = 2^62: one bit below overflow of low
constexpr std::size_t exact_terms_per_pass = 8;

struct ExactTerm {
    const float* values;  // as many as the sum has elements, all finite
    std::int64_t weight;  // [0, 2^29)
};

/// Adds weight * values of each term; several terms share one pass over the limbs (8 at a time: twice as fast).
///
/// shapes   high, low i64[P]; terms[k].values f32[P]
/// cost     per pass of up to 8 terms: reads 16 P + 4 P per term, writes 16 P
void exact_accumulate(std::span<std::int64_t> high, std::span<std::int64_t> low, std::span<const ExactTerm> terms);

/// Moves whole high units out of low: afterwards -2^51 <= low < 2^51, and equal sums have equal limbs.
void exact_carry(std::span<std::int64_t> high, std::span<std::int64_t> low);

/// Adds another sum's limbs. Counts as its additions since its last carry (one, when it has just been carried).
void exact_merge(std::span<std::int64_t> high, std::span<std::int64_t> low, std::span<const std::int64_t> other_high,
                 std::span<const std::int64_t> other_low);

/// mean = f32(f64(sum) / f64(weight)); the sum is rounded once. Limbs need no carry before.
///
/// shapes   high, low i64[P]; mean f32[P]
/// units    weight > 0, the total; 0 gives NaN where the sum is 0
void exact_mean(std::span<const std::int64_t> high, std::span<const std::int64_t> low, std::int64_t weight,
                std::span<float> mean);

}  // namespace causeway
