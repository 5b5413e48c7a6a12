// What norms do to rows of channels, for every instruction set: sums per channel in double, and element-wise passes.
//
// A row is one place of one example. Sums go down the rows in order, so bits do not depend on the vector width.
// Thread: any; reentrant.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)  // as in activations.cpp
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm_rows.cpp"
#include <hwy/foreach_target.h>
// After it, for the last set:
#include <hwy/highway.h>

#include "kernels/cpu/norm_rows.h"

HWY_BEFORE_NAMESPACE();
namespace causeway::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// body(tag, c) for whole vectors of channels, then for single ones. T: the type that is counted in.
template <class T, class Body>
HWY_INLINE void each_norm_channel(std::size_t channels, Body body) {
    const hn::ScalableTag<T> wide;
    const hn::CappedTag<T, 1> one;
    const std::size_t step = hn::Lanes(wide);
    std::size_t c = 0;
    for (; c + step <= channels; c += step) {
        body(wide, c);
    }
    for (; c < channels; ++c) {
        body(one, c);
    }
}

template <class D>
HWY_INLINE hn::Vec<D> load_norm_double(D d, const float* x) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), x));
}

}  // namespace

void add_columns(const float* x, Rows rows, double* sums) {
    for (std::size_t row = 0; row < rows.count; ++row, x += rows.channels) {
        each_norm_channel<double>(rows.channels, [&](auto d, std::size_t c) HWY_ATTR {
            hn::StoreU(hn::Add(hn::LoadU(d, sums + c), load_norm_double(d, x + c)), d, sums + c);
        });
    }
}

void add_squares(const float* x, Rows rows, const double* mean, double* sums) {
    for (std::size_t row = 0; row < rows.count; ++row, x += rows.channels) {
        each_norm_channel<double>(rows.channels, [&](auto d, std::size_t c) HWY_ATTR {
            const auto difference = hn::Sub(load_norm_double(d, x + c), hn::LoadU(d, mean + c));
            hn::StoreU(hn::Add(hn::LoadU(d, sums + c), hn::Mul(difference, difference)), d, sums + c);
        });
    }
}

void normalise_rows(const float* x, Rows rows, const NormChannels& channels, float* y) {
    for (std::size_t row = 0; row < rows.count; ++row, x += rows.channels, y += rows.channels) {
        each_norm_channel<float>(rows.channels, [&](auto d, std::size_t c) HWY_ATTR {
            const auto centred = hn::Sub(hn::LoadU(d, x + c), hn::LoadU(d, channels.mean + c));
            const auto h = hn::Mul(centred, hn::LoadU(d, channels.rstd + c));
            const auto scaled = hn::Mul(h, hn::LoadU(d, channels.gamma + c));
            hn::StoreU(hn::Add(scaled, hn::LoadU(d, channels.beta + c)), d, y + c);
        });
    }
}

void add_products(const float* x, const float* dy, Rows rows, const NormChannels& channels, double* sums,
                  double* products) {
    for (std::size_t row = 0; row < rows.count; ++row, x += rows.channels, dy += rows.channels) {
        each_norm_channel<double>(rows.channels, [&](auto d, std::size_t c) HWY_ATTR {
            const auto centred = hn::Sub(load_norm_double(d, x + c), load_norm_double(d, channels.mean + c));
            const auto h = hn::Mul(centred, load_norm_double(d, channels.rstd + c));
            const auto slope = load_norm_double(d, dy + c);
            hn::StoreU(hn::Add(hn::LoadU(d, sums + c), slope), d, sums + c);
            hn::StoreU(hn::Add(hn::LoadU(d, products + c), hn::Mul(slope, h)), d, products + c);
        });
    }
}

void norm_slopes(const float* x, const float* dy, Rows rows, const NormChannels& channels, const float* sums,
                 const float* products, float* dx) {
    for (std::size_t row = 0; row < rows.count; ++row, x += rows.channels, dy += rows.channels, dx += rows.channels) {
        each_norm_channel<float>(rows.channels, [&](auto d, std::size_t c) HWY_ATTR {
            const auto rstd = hn::LoadU(d, channels.rstd + c);
            const auto h = hn::Mul(hn::Sub(hn::LoadU(d, x + c), hn::LoadU(d, channels.mean + c)), rstd);
            const auto g = hn::Mul(hn::LoadU(d, dy + c), hn::LoadU(d, channels.gamma + c));
            const auto rest = hn::Add(hn::LoadU(d, sums + c), hn::Mul(h, hn::LoadU(d, products + c)));
            hn::StoreU(hn::Mul(rstd, hn::Sub(g, rest)), d, dx + c);
        });
    }
}

}  // namespace causeway::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace causeway::cpu {

HWY_EXPORT(add_columns);
HWY_EXPORT(add_squares);
HWY_EXPORT(normalise_rows);
HWY_EXPORT(add_products);
HWY_EXPORT(norm_slopes);

void add_columns(const float* x, Rows rows, double* sums) { HWY_DYNAMIC_DISPATCH(add_columns)(x, rows, sums); }
void add_squares(const float* x, Rows rows, const double* mean, double* sums) {
    HWY_DYNAMIC_DISPATCH(add_squares)(x, rows, mean, sums);
}
void normalise_rows(const float* x, Rows rows, const NormChannels& channels, float* y) {
    HWY_DYNAMIC_DISPATCH(normalise_rows)(x, rows, channels, y);
}
void add_products(const float* x, const float* dy, Rows rows, const NormChannels& channels, double* sums,
                  double* products) {
    HWY_DYNAMIC_DISPATCH(add_products)(x, dy, rows, channels, sums, products);
}
void norm_slopes(const float* x, const float* dy, Rows rows, const NormChannels& channels, const float* sums,
                 const float* products, float* dx) {
    HWY_DYNAMIC_DISPATCH(norm_slopes)(x, dy, rows, channels, sums, products, dx);
}

}  // namespace causeway::cpu
#endif
