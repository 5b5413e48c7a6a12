// Optimizer steps, axpy, scale, sums of squares and column sums, for every instruction set.
//
// All are bound by memory: AdamW moves 28 bytes a parameter. Sums are in double, in an order that the definition fixes
// (32 lanes; kernels/reference/vectors.cpp), not the vector width. Thread: any; reentrant.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)  // as in activations.cpp
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/arithmetic.cpp"
#include <hwy/foreach_target.h>
// After it, for the last set:
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/map-inl.h"
#include "kernels/cpu/streaming.h"

HWY_BEFORE_NAMESPACE();
namespace causeway::cpu::HWY_NAMESPACE {
namespace {

using F32 = hn::ScalableTag<float>;
using F64 = hn::ScalableTag<double>;
using HalfF32 = hn::Rebind<float, F64>;
using Floats = hn::Vec<F32>;

HWY_INLINE Floats load(const float* x) { return hn::LoadU(F32(), x); }
HWY_INLINE Floats constant(float x) { return hn::Set(F32(), x); }
HWY_INLINE hn::Vec<F64> load_double(const float* x) { return hn::PromoteTo(F64(), hn::LoadU(HalfF32(), x)); }

HWY_INLINE Floats decayed(const SgdStep& step, Floats g, Floats theta) {
    return step.decay == 0 ? g : hn::Add(g, hn::Mul(constant(step.decay), theta));
}

void sgd_plain(const SgdStep& step, float* theta, const float* g, std::size_t n) {
    map<2, 1>(n, hn::Lanes(F32()), {theta, g}, {theta}, [=](const float* const* in, float* const* out) HWY_ATTR {
        const auto t = load(in[0]);
        const auto slope = decayed(step, load(in[1]), t);
        hn::StoreU(hn::Sub(t, hn::Mul(constant(step.rate), slope)), F32(), out[0]);
    });
}

}  // namespace

void sgd(const SgdStep& step, float* theta, const float* g, float* m, std::size_t n) {
    if (m == nullptr) {
        return sgd_plain(step, theta, g, n);
    }
    map<3, 2>(n, hn::Lanes(F32()), {theta, g, m}, {theta, m}, [=](const float* const* in, float* const* out) HWY_ATTR {
        const auto t = load(in[0]);
        const auto slope = decayed(step, load(in[1]), t);
        const auto momentum = constant(step.momentum);
        const auto kept = hn::Mul(momentum, load(in[2]));
        const auto moment = step.first ? slope : hn::Add(kept, hn::Mul(constant(step.undampened), slope));
        const auto direction = step.nesterov ? hn::Add(slope, hn::Mul(momentum, moment)) : moment;
        hn::StoreU(hn::Sub(t, hn::Mul(constant(step.rate), direction)), F32(), out[0]);
        hn::StoreU(moment, F32(), out[1]);
    });
}

void adamw(const AdamwStep& s, float* theta, const float* g, float* m, float* v, std::size_t n) {
    map<4, 3>(n, hn::Lanes(F32()), {theta, g, m, v}, {theta, m, v},
              [=](const float* const* in, float* const* out) HWY_ATTR {
        const auto slope = load(in[1]);
        const auto moment = hn::Add(hn::Mul(constant(s.beta1), load(in[2])), hn::Mul(constant(s.rest1), slope));
        const auto square = hn::Mul(hn::Mul(constant(s.rest2), slope), slope);
        const auto spread = hn::Add(hn::Mul(constant(s.beta2), load(in[3])), square);
        const auto root = hn::Add(hn::Mul(hn::Sqrt(spread), constant(s.correction)), constant(s.epsilon));
        const auto change = hn::Mul(constant(s.step_size), hn::Div(moment, root));
        hn::StoreU(hn::Sub(hn::Mul(load(in[0]), constant(s.keep)), change), F32(), out[0]);
        hn::StoreU(moment, F32(), out[1]);
        hn::StoreU(spread, F32(), out[2]);
    });
}

void adam(const AdamStep& s, float* theta, const float* g, float* m, float* v, std::size_t n) {
    map<4, 3>(n, hn::Lanes(F32()), {theta, g, m, v}, {theta, m, v},
              [=](const float* const* in, float* const* out) HWY_ATTR {
        const auto t = load(in[0]);
        const auto given = load(in[1]);
        const auto slope = s.l2 == 0 ? given : hn::Add(given, hn::Mul(constant(s.l2), t));
        const auto moment = hn::Add(hn::Mul(constant(s.beta1), load(in[2])), hn::Mul(constant(s.rest1), slope));
        const auto square = hn::Mul(hn::Mul(constant(s.rest2), slope), slope);
        const auto spread = hn::Add(hn::Mul(constant(s.beta2), load(in[3])), square);
        const auto root = hn::Add(hn::Mul(hn::Sqrt(spread), constant(s.correction)), constant(s.epsilon));
        const auto along = hn::Mul(constant(s.moment), moment);
        const auto direction = s.own == 0 ? along : hn::Add(hn::Mul(constant(s.own), slope), along);
        hn::StoreU(hn::Sub(hn::Mul(t, constant(s.keep)), hn::Div(direction, root)), F32(), out[0]);
        hn::StoreU(moment, F32(), out[1]);
        hn::StoreU(spread, F32(), out[2]);
    });
}

void axpy(float a, const float* x, float* y, std::size_t n) {
    map<2, 1>(n, hn::Lanes(F32()), {x, y}, {y}, [=](const float* const* in, float* const* out) HWY_ATTR {
        hn::StoreU(hn::Add(hn::Mul(constant(a), load(in[0])), load(in[1])), F32(), out[0]);
    });
}

void scale(float a, float* x, std::size_t n) {
    map<1, 1>(n, hn::Lanes(F32()), {x}, {x}, [=](const float* const* in, float* const* out) HWY_ATTR {
        hn::StoreU(hn::Mul(load(in[0]), constant(a)), F32(), out[0]);
    });
}

double sum_of_squares(const float* x, std::size_t n) {
    constexpr std::size_t lane_count = 32;
    constexpr std::size_t block = 4096;  // 16 KiB stay in the first cache while narrow vectors sweep it several times
    HWY_ALIGN double lanes[lane_count] = {};
    const std::size_t step = hn::Lanes(F64());
    const std::size_t whole = n / lane_count * lane_count;
    const F64 d;
    for (std::size_t begin = 0; begin < whole; begin += block) {
        const std::size_t end = std::min(whole, begin + block);
        for (std::size_t lane = 0; lane < lane_count; lane += 4 * step) {
            double* l = lanes + lane;
            auto a = hn::LoadU(d, l);
            auto b = hn::LoadU(d, l + step);
            auto c = hn::LoadU(d, l + 2 * step);
            auto e = hn::LoadU(d, l + 3 * step);
            for (const float* p = x + begin + lane; p < x + end; p += lane_count) {
                const auto pa = load_double(p);
                const auto pb = load_double(p + step);
                const auto pc = load_double(p + 2 * step);
                const auto pe = load_double(p + 3 * step);
                a = hn::Add(a, hn::Mul(pa, pa));
                b = hn::Add(b, hn::Mul(pb, pb));
                c = hn::Add(c, hn::Mul(pc, pc));
                e = hn::Add(e, hn::Mul(pe, pe));
            }
            hn::StoreU(a, d, l);
            hn::StoreU(b, d, l + step);
            hn::StoreU(c, d, l + 2 * step);
            hn::StoreU(e, d, l + 3 * step);
        }
    }
    for (std::size_t i = whole; i < n; ++i) {
        lanes[i - whole] += double{x[i]} * double{x[i]};
    }
    for (std::size_t half = lane_count / 2; half > 0; half /= 2) {
        for (std::size_t j = 0; j < half; ++j) {
            lanes[j] += lanes[j + half];
        }
    }
    return lanes[0];
}

/// One vector of columns; the tag of one lane takes the last ones.
template <class D>
HWY_INLINE void sum_one(D d, const float* x, const Columns& shape, bool adds, std::size_t o, float* sums) {
    const hn::Rebind<float, D> half;
    auto sum = adds ? hn::PromoteTo(d, hn::LoadU(half, sums + o)) : hn::Zero(d);
    for (std::size_t row = 0; row < shape.rows; ++row) {
        sum = hn::Add(sum, hn::PromoteTo(d, hn::LoadU(half, x + row * shape.columns + o)));
    }
    hn::StoreU(hn::DemoteTo(half, sum), half, sums + o);
}

/// Four vectors side by side: whole cache lines are read, and four sums are in flight; then single ones.
void column_sums(const float* x, const Columns& shape, cw_write write, float* sums) {
    const F64 d;
    const std::size_t step = hn::Lanes(d);
    const bool adds = write == CW_ACCUMULATE;
    std::size_t o = shape.begin;
    for (; o + 4 * step <= shape.end; o += 4 * step) {
        auto a = adds ? load_double(sums + o) : hn::Zero(d);
        auto b = adds ? load_double(sums + o + step) : hn::Zero(d);
        auto c = adds ? load_double(sums + o + 2 * step) : hn::Zero(d);
        auto e = adds ? load_double(sums + o + 3 * step) : hn::Zero(d);
        for (std::size_t row = 0; row < shape.rows; ++row) {
            const float* from = x + row * shape.columns + o;
            a = hn::Add(a, load_double(from));
            b = hn::Add(b, load_double(from + step));
            c = hn::Add(c, load_double(from + 2 * step));
            e = hn::Add(e, load_double(from + 3 * step));
        }
        hn::StoreU(hn::DemoteTo(HalfF32(), a), HalfF32(), sums + o);
        hn::StoreU(hn::DemoteTo(HalfF32(), b), HalfF32(), sums + o + step);
        hn::StoreU(hn::DemoteTo(HalfF32(), c), HalfF32(), sums + o + 2 * step);
        hn::StoreU(hn::DemoteTo(HalfF32(), e), HalfF32(), sums + o + 3 * step);
    }
    for (; o + step <= shape.end; o += step) {
        sum_one(d, x, shape, adds, o, sums);
    }
    for (; o < shape.end; ++o) {
        sum_one(hn::CappedTag<double, 1>(), x, shape, adds, o, sums);
    }
}

}  // namespace causeway::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace causeway::cpu {

HWY_EXPORT(sgd);
HWY_EXPORT(adamw);
HWY_EXPORT(adam);
HWY_EXPORT(axpy);
HWY_EXPORT(scale);
HWY_EXPORT(sum_of_squares);
HWY_EXPORT(column_sums);

void sgd(const SgdStep& step, float* theta, const float* g, float* m, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(sgd)(step, theta, g, m, n);
}
void adamw(const AdamwStep& step, float* theta, const float* g, float* m, float* v, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(adamw)(step, theta, g, m, v, n);
}
void adam(const AdamStep& step, float* theta, const float* g, float* m, float* v, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(adam)(step, theta, g, m, v, n);
}
void axpy(float a, const float* x, float* y, std::size_t n) { HWY_DYNAMIC_DISPATCH(axpy)(a, x, y, n); }
void scale(float a, float* x, std::size_t n) { HWY_DYNAMIC_DISPATCH(scale)(a, x, n); }
double sum_of_squares(const float* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(sum_of_squares)(x, n); }
void column_sums(const float* x, const Columns& shape, cw_write write, float* sums) {
    HWY_DYNAMIC_DISPATCH(column_sums)(x, shape, write, sums);
}

}  // namespace causeway::cpu
#endif
