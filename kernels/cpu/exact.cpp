// Exact weighted sums for every instruction set; kernels/exact.h has the arithmetic and its limits.
//
// The limbs of a vector stay in registers while up to eight updates are added to them, so that 16 bytes of limbs are
// read and written once per eight updates. Memory decides: 11 GB/s of f32 input in passes of eight against 5.5 one
// at a time, on AVX-512 and AVX2 alike (2^20 elements, a busy machine). Ten streams at once are more than the
// processor follows by itself: asking for each a few lines ahead gives 12.3.
// Thread: any; reentrant.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)  // as in activations.cpp
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/exact.cpp"
#include <hwy/foreach_target.h>
// After it, for the last set:
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>

#include "kernels/cpu/streaming.h"

#ifndef CAUSEWAY_KERNELS_CPU_EXACT_ONCE
#define CAUSEWAY_KERNELS_CPU_EXACT_ONCE
namespace causeway::cpu {

__extension__ using Wide = __int128;

constexpr int low_bits = 52;  // of one high unit: 2^-10 / 2^-62
constexpr std::int64_t low_per_high = std::int64_t{1} << low_bits;
constexpr std::size_t line_of_values = 16;  // f32 in a cache line
constexpr std::size_t ahead = 64;           // elements; up to 128 measures alike, 1,024 is as none

/// One element's mean with any limbs: a 128-bit integer is rounded once to double.
inline float exact_mean_of(std::int64_t high, std::int64_t low, double weight) {
    const auto sum = static_cast<double>(Wide{high} * low_per_high + low);
    return static_cast<float>(sum * 0x1p-62 / weight);
}

}  // namespace causeway::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace causeway::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using ExactF64 = hn::ScalableTag<double>;
using I64 = hn::ScalableTag<std::int64_t>;
using ExactHalfF32 = hn::Rebind<float, ExactF64>;
using Integers = hn::Vec<I64>;

struct Limbs {
    Integers high;
    Integers low;
};

/// Adds one element of each term, in the plainest form.
void add_element(const ExactPass& pass, std::int64_t* high, std::int64_t* low, std::size_t i) {
    for (int k = 0; k < pass.count; ++k) {
        const double product = pass.weights[k] * double{pass.values[k][i]};
        const double whole = std::rint(product * 0x1p10);
        high[i] += static_cast<std::int64_t>(whole);
        low[i] += static_cast<std::int64_t>(std::rint((product - whole * 0x1p-10) * 0x1p62));
    }
}

/// Adds a vector of each term; `fits` becomes false where a product is too large for this form.
///
/// A double that is added to 1.5 * 2^52 is rounded to an integer, to nearest even as rint does, and stands in the low
/// bits of the result; added to 1.5 it is rounded to units of 2^-52. So with products in units of 2^-10 both limbs are
/// one addition each, and no instruction set needs a conversion. The constants' own bits are taken off at the end.
/// Right while |product| <= 2^51 units, 2^41; the rest is at most half a unit.
HWY_INLINE Limbs added(Limbs limbs, const ExactPass& pass, std::size_t i, bool& fits) {
    const ExactF64 d;
    constexpr double to_integer = 0x1.8p52;
    constexpr double to_low_units = 1.5;
    const hn::Rebind<std::uint64_t, ExactF64> bits;  // unsigned: their sums wrap around
    auto high = hn::BitCast(bits, limbs.high);
    auto low = hn::BitCast(bits, limbs.low);
    auto largest = hn::Zero(d);
    for (int k = 0; k < pass.count; ++k) {
        const auto x = hn::PromoteTo(d, hn::LoadU(ExactHalfF32(), pass.values[k] + i));
        const auto product = hn::Mul(hn::Set(d, pass.weights[k] * 0x1p10), x);
        const auto shifted = hn::Add(product, hn::Set(d, to_integer));
        const auto rest = hn::Sub(product, hn::Sub(shifted, hn::Set(d, to_integer)));
        high = hn::Add(high, hn::BitCast(bits, shifted));
        low = hn::Add(low, hn::BitCast(bits, hn::Add(rest, hn::Set(d, to_low_units))));
        largest = hn::Max(largest, hn::Abs(product));
    }
    fits = hn::AllTrue(d, hn::Lt(largest, hn::Set(d, 0x1p51)));
    const auto count = static_cast<std::uint64_t>(pass.count);
    high = hn::Sub(high, hn::Set(bits, count * std::bit_cast<std::uint64_t>(to_integer)));
    low = hn::Sub(low, hn::Set(bits, count * std::bit_cast<std::uint64_t>(to_low_units)));
    return {hn::BitCast(I64(), high), hn::BitCast(I64(), low)};
}

/// The lines that the next turns need: one of each update, two of each limb. Changes no bit.
HWY_INLINE void fetch_ahead(const ExactPass& pass, const std::int64_t* high, const std::int64_t* low, std::size_t i) {
    for (int k = 0; k < pass.count; ++k) {
        hwy::Prefetch(pass.values[k] + i);
    }
    for (const auto at : {i, i + line_of_values / 2}) {
        hwy::Prefetch(high + at);
        hwy::Prefetch(low + at);
    }
}

HWY_INLINE Limbs carried(Limbs limbs) {
    const auto carry = hn::ShiftRight<low_bits>(hn::Add(limbs.low, hn::Set(I64(), low_per_high / 2)));
    return {hn::Add(limbs.high, carry), hn::Sub(limbs.low, hn::ShiftLeft<low_bits>(carry))};
}

}  // namespace

void exact_add(const ExactPass& pass, std::int64_t* high, std::int64_t* low, std::size_t n) {
    const std::size_t step = hn::Lanes(I64());
    std::size_t i = 0;
    for (; i + step <= n; i += step) {
        if (i % line_of_values == 0 && i + ahead < n) {
            fetch_ahead(pass, high, low, i + ahead);
        }
        bool fits = false;
        const auto limbs = added({hn::LoadU(I64(), high + i), hn::LoadU(I64(), low + i)}, pass, i, fits);
        if (!fits) {
            for (std::size_t j = i; j < i + step; ++j) {
                add_element(pass, high, low, j);
            }
            continue;
        }
        hn::StoreU(limbs.high, I64(), high + i);
        hn::StoreU(limbs.low, I64(), low + i);
    }
    for (; i < n; ++i) {
        add_element(pass, high, low, i);
    }
}

void exact_carry(std::int64_t* high, std::int64_t* low, std::size_t n) {
    const std::size_t step = hn::Lanes(I64());
    std::size_t i = 0;
    for (; i + step <= n; i += step) {
        const auto limbs = carried({hn::LoadU(I64(), high + i), hn::LoadU(I64(), low + i)});
        hn::StoreU(limbs.high, I64(), high + i);
        hn::StoreU(limbs.low, I64(), low + i);
    }
    for (; i < n; ++i) {
        const auto carry = (low[i] + low_per_high / 2) >> low_bits;
        high[i] += carry;
        low[i] -= carry * low_per_high;
    }
}

void exact_mean(const std::int64_t* high, const std::int64_t* low, double weight, float* mean, std::size_t n) {
    const ExactF64 d;
    const std::size_t step = hn::Lanes(d);
    const auto exact_double = hn::Set(I64(), std::int64_t{1} << 53);  // integers up to here are doubles
    std::size_t i = 0;
    for (; i + step <= n; i += step) {
        const auto limbs = carried({hn::LoadU(I64(), high + i), hn::LoadU(I64(), low + i)});
        if (!hn::AllTrue(I64(), hn::Lt(hn::Abs(limbs.high), exact_double))) {
            for (std::size_t j = i; j < i + step; ++j) {
                mean[j] = exact_mean_of(high[j], low[j], weight);
            }
            continue;
        }
        // Both limbs are exact in double and so are their scaled values: the addition is the sum's one rounding.
        const auto sum = hn::Add(hn::Mul(hn::ConvertTo(d, limbs.high), hn::Set(d, 0x1p-10)),
                                 hn::Mul(hn::ConvertTo(d, limbs.low), hn::Set(d, 0x1p-62)));
        hn::StoreU(hn::DemoteTo(ExactHalfF32(), hn::Div(sum, hn::Set(d, weight))), ExactHalfF32(), mean + i);
    }
    for (; i < n; ++i) {
        mean[i] = exact_mean_of(high[i], low[i], weight);
    }
}

}  // namespace causeway::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace causeway::cpu {

HWY_EXPORT(exact_add);
HWY_EXPORT(exact_carry);
HWY_EXPORT(exact_mean);

void exact_add(const ExactPass& pass, std::int64_t* high, std::int64_t* low, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(exact_add)(pass, high, low, n);
}
void exact_carry(std::int64_t* high, std::int64_t* low, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(exact_carry)(high, low, n);
}
void exact_mean(const std::int64_t* high, const std::int64_t* low, double weight, float* mean, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(exact_mean)(high, low, weight, mean, n);
}

std::vector<std::string_view> instruction_sets() {
    std::vector<std::string_view> names;
    for (const auto target : hwy::SupportedAndGeneratedTargets()) {
        names.emplace_back(hwy::TargetName(target));
    }
    return names;
}

void use_instruction_set(std::string_view name) {
    hwy::SetSupportedTargetsForTest(0);
    std::int64_t wanted = 0;
    for (const auto target : hwy::SupportedAndGeneratedTargets()) {
        wanted |= name == hwy::TargetName(target) ? target : 0;
    }
    hwy::SetSupportedTargetsForTest(wanted);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace causeway::cpu
#endif
