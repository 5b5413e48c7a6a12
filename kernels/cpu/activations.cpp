// relu, the exact gelu, and the exponentials of the softmax, for every instruction set.
//
// gelu needs erfc to float precision: the Chebyshev fit of Numerical Recipes (section 6.2, "erfcc", relative error
// below 1.2e-7 everywhere), evaluated in double so that no further error is added. exp is its own polynomial rather
// than the C library's, whose bits depend on the machine. Thread: any; reentrant.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)  // two sets and plain C++ are enough, and compile sooner
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activations.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each set
// After it, for the last set:
#include <hwy/highway.h>

#include "kernels/cpu/map-inl.h"
#include "kernels/cpu/streaming.h"

HWY_BEFORE_NAMESPACE();
namespace causeway::cpu::HWY_NAMESPACE {
namespace {

using ActivationF32 = hn::ScalableTag<float>;
using ActivationF64 = hn::ScalableTag<double>;
using ActivationHalfF32 = hn::Rebind<float, ActivationF64>;
using Doubles = hn::Vec<ActivationF64>;

HWY_INLINE Doubles load_activations(const float* x) {
    return hn::PromoteTo(ActivationF64(), hn::LoadU(ActivationHalfF32(), x));
}
HWY_INLINE Doubles activation_constant(double x) {
    return hn::Set(ActivationF64(), x);
}

/// The polynomial with these coefficients, the highest power first. No fused multiply-add: equal bits everywhere.
template <std::size_t Count>
HWY_INLINE Doubles polynomial(Doubles x, const double (&coefficients)[Count]) {
    auto sum = activation_constant(coefficients[0]);
    for (std::size_t i = 1; i < Count; ++i) {
        sum = hn::Add(hn::Mul(sum, x), activation_constant(coefficients[i]));
    }
    return sum;
}

/// exp(x) for x <= 1 or NaN; 0 below -700. Relative error below 1e-11: |r| <= ln 2 / 2, so r^10 / 10! is 7e-12.
HWY_INLINE Doubles exponential(Doubles x) {
    constexpr double taylor[] = {1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                                 1.0 / 24,     1.0 / 6,     0.5,        1.0,       1.0};
    constexpr double log2_e = 0x1.71547652b82fep0;
    constexpr double ln_2 = 0x1.62e42fefa39efp-1;
    const auto magic = activation_constant(0x1.8p52);  // adding it rounds to an integer, which then is in the low bits
    const hn::Rebind<std::int64_t, ActivationF64> integers;
    const auto shifted = hn::Add(hn::Mul(x, activation_constant(log2_e)), magic);
    const auto k = hn::Sub(shifted, magic);
    const auto r = hn::Sub(x, hn::Mul(k, activation_constant(ln_2)));
    const auto biased = hn::Add(hn::BitCast(integers, shifted), hn::Set(integers, std::int64_t{1023}));
    const auto power = hn::BitCast(ActivationF64(), hn::ShiftLeft<52>(biased));  // 2^k
    const auto value = hn::Mul(polynomial(r, taylor), power);
    return hn::IfThenElse(hn::Lt(x, activation_constant(-700.0)), hn::Zero(ActivationF64()), value);
}

/// The standard normal distribution function.
HWY_INLINE Doubles normal_cdf(Doubles x) {
    constexpr double fit[] = {0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807,
                              -0.18628806, 0.09678418, 0.37409196, 1.00002368,  -1.26551223};
    const auto z = hn::Mul(hn::Abs(x), activation_constant(0x1.6a09e667f3bcdp-1));  // 1 / sqrt 2
    const auto t =
        hn::Div(activation_constant(1.0), hn::Add(activation_constant(1.0), hn::Mul(activation_constant(0.5), z)));
    const auto exponent = hn::Sub(polynomial(t, fit), hn::Mul(z, z));
    const auto tail = hn::Mul(hn::Mul(activation_constant(0.5), t), exponential(exponent));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(ActivationF64())), tail, hn::Sub(activation_constant(1.0), tail));
}

}  // namespace

void relu(const float* x, float* y, std::size_t n) {
    const ActivationF32 d;
    map<1, 1>(n, hn::Lanes(d), {x}, {y}, [d](const float* const* in, float* const* out) HWY_ATTR {
        const auto v = hn::LoadU(d, in[0]);
        hn::StoreU(hn::IfThenElse(hn::Le(v, hn::Zero(d)), hn::Zero(d), v), d, out[0]);  // a NaN is not <= 0
    });
}

void relu_backward(const float* x, const float* dy, float* dx, std::size_t n) {
    const ActivationF32 d;
    map<2, 1>(n, hn::Lanes(d), {x, dy}, {dx}, [d](const float* const* in, float* const* out) HWY_ATTR {
        const auto passes = hn::Gt(hn::LoadU(d, in[0]), hn::Zero(d));
        hn::StoreU(hn::IfThenElse(passes, hn::LoadU(d, in[1]), hn::Zero(d)), d, out[0]);
    });
}

void gelu(const float* x, float* y, std::size_t n) {
    map<1, 1>(n, hn::Lanes(ActivationF64()), {x}, {y}, [](const float* const* in, float* const* out) HWY_ATTR {
        const ActivationHalfF32 half;
        const auto share = hn::DemoteTo(half, normal_cdf(load_activations(in[0])));
        hn::StoreU(hn::Mul(hn::LoadU(half, in[0]), share), half, out[0]);
    });
}

void gelu_backward(const float* x, const float* dy, float* dx, std::size_t n) {
    map<2, 1>(n, hn::Lanes(ActivationF64()), {x, dy}, {dx}, [](const float* const* in, float* const* out) HWY_ATTR {
        const ActivationHalfF32 half;
        const auto v = load_activations(in[0]);
        const auto bell = exponential(hn::Mul(hn::Mul(v, v), activation_constant(-0.5)));
        const auto density = hn::Mul(bell, activation_constant(0x1.9884533d43651p-2));  // 1 / sqrt(2 pi)
        const auto slope = hn::DemoteTo(half, hn::Add(normal_cdf(v), hn::Mul(v, density)));
        hn::StoreU(hn::Mul(hn::LoadU(half, in[1]), slope), half, out[0]);
    });
}

/// Also where x is below -700 and the exponential is 0: then the sigmoid is 0 or 1.
HWY_INLINE Doubles sigmoid(Doubles x) {
    const auto e = exponential(hn::Neg(hn::Abs(x)));
    const auto larger = hn::Div(activation_constant(1.0), hn::Add(activation_constant(1.0), e));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(ActivationF64())), hn::Mul(e, larger), larger);
}

void silu(const float* x, float* y, std::size_t n) {
    map<1, 1>(n, hn::Lanes(ActivationF64()), {x}, {y}, [](const float* const* in, float* const* out) HWY_ATTR {
        const ActivationHalfF32 half;
        const auto share = hn::DemoteTo(half, sigmoid(load_activations(in[0])));
        hn::StoreU(hn::Mul(hn::LoadU(half, in[0]), share), half, out[0]);
    });
}

void silu_backward(const float* x, const float* dy, float* dx, std::size_t n) {
    map<2, 1>(n, hn::Lanes(ActivationF64()), {x, dy}, {dx}, [](const float* const* in, float* const* out) HWY_ATTR {
        const ActivationHalfF32 half;
        const auto v = load_activations(in[0]);
        const auto s = sigmoid(v);
        const auto rest = hn::Mul(v, hn::Sub(activation_constant(1.0), s));
        const auto slope = hn::DemoteTo(half, hn::Mul(s, hn::Add(activation_constant(1.0), rest)));
        hn::StoreU(hn::Mul(hn::LoadU(half, in[1]), slope), half, out[0]);
    });
}

double sum_of_exponentials(const float* x, double largest, std::size_t n) {
    constexpr std::size_t lane_count = 8;  // lane j takes x[j], x[j + 8], ...: an order that no vector width changes
    HWY_ALIGN double lanes[lane_count] = {};
    HWY_ALIGN float padded[lane_count];
    const std::size_t step = hn::Lanes(ActivationF64());
    for (std::size_t i = 0; i < n; i += lane_count) {
        const float* block = x + i;
        if (i + lane_count > n) {
            for (std::size_t j = 0; j < lane_count; ++j) {
                padded[j] = i + j < n ? x[i + j] : -HUGE_VALF;  // exp of it is 0
            }
            block = padded;
        }
        for (std::size_t j = 0; j < lane_count; j += step) {
            const auto e = exponential(hn::Sub(load_activations(block + j), activation_constant(largest)));
            hn::StoreU(hn::Add(hn::LoadU(ActivationF64(), lanes + j), e), ActivationF64(), lanes + j);
        }
    }
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

void scaled_exponentials(const float* x, double largest, double factor, float* p, std::size_t n) {
    map<1, 1>(n, hn::Lanes(ActivationF64()), {x}, {p}, [=](const float* const* in, float* const* out) HWY_ATTR {
        const auto e = exponential(hn::Sub(load_activations(in[0]), activation_constant(largest)));
        hn::StoreU(hn::DemoteTo(ActivationHalfF32(), hn::Mul(e, activation_constant(factor))), ActivationHalfF32(),
                   out[0]);
    });
}

}  // namespace causeway::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace causeway::cpu {

HWY_EXPORT(relu);
HWY_EXPORT(relu_backward);
HWY_EXPORT(gelu);
HWY_EXPORT(gelu_backward);
HWY_EXPORT(silu);
HWY_EXPORT(silu_backward);
HWY_EXPORT(sum_of_exponentials);
HWY_EXPORT(scaled_exponentials);

void relu(const float* x, float* y, std::size_t n) { HWY_DYNAMIC_DISPATCH(relu)(x, y, n); }
void relu_backward(const float* x, const float* dy, float* dx, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(relu_backward)(x, dy, dx, n);
}
void gelu(const float* x, float* y, std::size_t n) { HWY_DYNAMIC_DISPATCH(gelu)(x, y, n); }
void gelu_backward(const float* x, const float* dy, float* dx, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(gelu_backward)(x, dy, dx, n);
}
void silu(const float* x, float* y, std::size_t n) { HWY_DYNAMIC_DISPATCH(silu)(x, y, n); }
void silu_backward(const float* x, const float* dy, float* dx, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(silu_backward)(x, dy, dx, n);
}
double sum_of_exponentials(const float* x, double largest, std::size_t n) {
    return HWY_DYNAMIC_DISPATCH(sum_of_exponentials)(x, largest, n);
}
void scaled_exponentials(const float* x, double largest, double factor, float* p, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(scaled_exponentials)(x, largest, factor, p, n);
}

}  // namespace causeway::cpu
#endif
