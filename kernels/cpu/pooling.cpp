// Pools over images with channels last: whole vectors of channels at a time, images shared between threads.
//
// The largest place is found again in the backward pass rather than kept: an index costs as much memory as the image.
// Every window adds to the gradient in one order, so bits depend on neither threads nor vector width.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)  // as in activations.cpp
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pooling.cpp"
#include <hwy/foreach_target.h>
// After it, for the last set:
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/window.h"

HWY_BEFORE_NAMESPACE();
namespace causeway::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The places of one window in one image.
struct Places {
    Reach rows, columns;
    std::int64_t row_step, place_step;  // elements

    template <class Visit>
    HWY_INLINE void each(Visit visit) const {
        for (auto row = rows.begin; row < rows.end; ++row) {
            for (auto column = columns.begin; column < columns.end; ++column) {
                visit(row * row_step + column * place_step);
            }
        }
    }
};

/// The places of a window of 2x2 inside the image, without a loop.
struct Square {
    std::int64_t first, row_step, place_step;  // elements

    template <class Visit>
    HWY_INLINE void each(Visit visit) const {
        visit(first);
        visit(first + place_step);
        visit(first + row_step);
        visit(first + row_step + place_step);
    }
};

/// visit(places, output's offset) for each window of an image.
template <class Visit>
HWY_INLINE void each_window(const Window& w, Visit visit) {
    if (tiles(w) && w.stride == 2) {  // the usual pool, in which the loops over places cost as much as the work
        const auto row_step = w.width * w.channels;
        for (std::int64_t r = 0; r < w.out_height; ++r) {
            for (std::int64_t s = 0; s < w.out_width; ++s) {
                visit(Square{2 * r * row_step + 2 * s * w.channels, row_step, w.channels},
                      (r * w.out_width + s) * w.channels);
            }
        }
        return;
    }
    for (std::int64_t r = 0; r < w.out_height; ++r) {
        const auto rows = reach_of(r, w.stride, w.above, w.window_height, w.height);
        for (std::int64_t s = 0; s < w.out_width; ++s) {
            const auto columns = reach_of(s, w.stride, w.left, w.window_width, w.width);
            visit(Places{rows, columns, w.width * w.channels, w.channels}, (r * w.out_width + s) * w.channels);
        }
    }
}

/// body(tag, c) for whole vectors of channels, then for single ones.
template <class Body>
HWY_INLINE void each_pooled_channel(std::int64_t channels, Body body) {
    const hn::ScalableTag<float> wide;
    const hn::CappedTag<float, 1> one;
    const auto step = static_cast<std::int64_t>(hn::Lanes(wide));
    std::int64_t c = 0;
    for (; c + step <= channels; c += step) {
        body(wide, c);
    }
    for (; c < channels; ++c) {
        body(one, c);
    }
}

}  // namespace

namespace {

/// `value(d, pointer)` gives a place's value.
template <class Value>
HWY_INLINE void largest_of_windows(const Window& w, float* y, Value value) {
    each_window(w, [&](const auto& places, std::int64_t output) HWY_ATTR {
        each_pooled_channel(w.channels, [&](auto d, std::int64_t c) HWY_ATTR {
            auto largest = hn::Set(d, -HUGE_VALF);
            places.each([&](std::int64_t place) HWY_ATTR {
                const auto v = value(d, place + c);
                largest = hn::IfThenElse(hn::Or(hn::Gt(v, largest), hn::IsNaN(v)), v, largest);
            });
            hn::StoreU(largest, d, y + output + c);
        });
    });
}

}  // namespace

void maxpool_image(const Window& w, const float* x, float* y) {
    largest_of_windows(w, y, [&](auto d, std::int64_t place) HWY_ATTR { return hn::LoadU(d, x + place); });
}

/// One pass over the image instead of two: each place is in one window.
void relu_maxpool_image(const Window& w, float* x, float* y) {
    largest_of_windows(w, y, [&](auto d, std::int64_t place) HWY_ATTR {
        const auto v = hn::LoadU(d, x + place);
        const auto kept = hn::IfThenElseZero(hn::Or(hn::Gt(v, hn::Zero(d)), hn::IsNaN(v)), v);
        hn::StoreU(kept, d, x + place);
        return kept;
    });
}

namespace {

/// visit(d, place, takes, slope) for each place of each window: whether it is the first of the largest.
template <class Visit>
HWY_INLINE void each_claim(const Window& w, const float* x, const float* y, const float* dy, Visit visit) {
    each_window(w, [&](const auto& places, std::int64_t output) HWY_ATTR {
        each_pooled_channel(w.channels, [&](auto d, std::int64_t c) HWY_ATTR {
            const auto largest = hn::LoadU(d, y + output + c);
            const auto slope = hn::LoadU(d, dy + output + c);
            auto open = hn::Eq(hn::Zero(d), hn::Zero(d));  // no place has taken the slope yet
            places.each([&](std::int64_t place) HWY_ATTR {
                const auto v = hn::LoadU(d, x + place + c);
                const auto same = hn::Or(hn::Eq(v, largest), hn::And(hn::IsNaN(v), hn::IsNaN(largest)));
                visit(d, place + c, hn::And(same, open), slope);
                open = hn::AndNot(same, open);
            });
        });
    });
}

}  // namespace

/// Where windows tile the image each place is written once, and its gradient is neither cleared before nor read: half
/// the memory traffic. The sum with zero stays, for it makes the zero of a negative one positive, as in the other form.
void maxpool_backward_image(const Window& w, const float* x, const float* y, const float* dy, float* dx) {
    if (tiles(w)) {
        each_claim(w, x, y, dy, [&](auto d, std::int64_t place, auto takes, auto slope) HWY_ATTR {
            hn::StoreU(hn::IfThenElseZero(takes, hn::Add(hn::Zero(d), slope)), d, dx + place);
        });
        return;
    }
    std::fill_n(dx, w.in_size(), 0.0f);
    each_claim(w, x, y, dy, [&](auto d, std::int64_t place, auto takes, auto slope) HWY_ATTR {
        const auto before = hn::LoadU(d, dx + place);
        hn::StoreU(hn::IfThenElse(takes, hn::Add(before, slope), before), d, dx + place);
    });
}

/// What relu cut off takes nothing; nor does a NaN, of which relu's backward pass lets nothing through.
void relu_maxpool_backward_image(const Window& w, const float* x, const float* y, const float* dy, float* dx) {
    each_claim(w, x, y, dy, [&](auto d, std::int64_t place, auto takes, auto slope) HWY_ATTR {
        const auto passes = hn::And(takes, hn::Gt(hn::LoadU(d, x + place), hn::Zero(d)));
        hn::StoreU(hn::IfThenElseZero(passes, hn::Add(hn::Zero(d), slope)), d, dx + place);
    });
}

void avgpool_image(const Window& w, const float* x, float* y) {
    const auto share = static_cast<float>(1.0 / static_cast<double>(w.window_height * w.window_width));
    each_window(w, [&](const auto& places, std::int64_t output) HWY_ATTR {
        each_pooled_channel(w.channels, [&](auto d, std::int64_t c) HWY_ATTR {
            auto sum = hn::Zero(d);
            places.each([&](std::int64_t place) HWY_ATTR { sum = hn::Add(sum, hn::LoadU(d, x + place + c)); });
            hn::StoreU(hn::Mul(sum, hn::Set(d, share)), d, y + output + c);
        });
    });
}

void avgpool_backward_image(const Window& w, const float* dy, float* dx) {
    const auto share = static_cast<float>(1.0 / static_cast<double>(w.window_height * w.window_width));
    std::fill_n(dx, w.in_size(), 0.0f);
    each_window(w, [&](const auto& places, std::int64_t output) HWY_ATTR {
        each_pooled_channel(w.channels, [&](auto d, std::int64_t c) HWY_ATTR {
            const auto slope = hn::Mul(hn::LoadU(d, dy + output + c), hn::Set(d, share));
            places.each([&](std::int64_t place) HWY_ATTR {
                hn::StoreU(hn::Add(hn::LoadU(d, dx + place + c), slope), d, dx + place + c);
            });
        });
    });
}

}  // namespace causeway::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace causeway::cpu {

HWY_EXPORT(maxpool_image);
HWY_EXPORT(maxpool_backward_image);
HWY_EXPORT(relu_maxpool_image);
HWY_EXPORT(relu_maxpool_backward_image);
HWY_EXPORT(avgpool_image);
HWY_EXPORT(avgpool_backward_image);

namespace {

constexpr std::int64_t least_pooled_elements = 16384;  // of a thread's part: about 5 us, several times a wake-up

/// image(b) on all images, shared between the threads.
template <class Image>
void each_image(const Window& w, int threads, Image image) {
    parallel(threads, w.batch, least_pooled_elements / w.in_size() + 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b) {
            image(b);
        }
    });
}

void maxpool(const cw_op& op, const cw_run& run, int threads) {
    const auto w = window_of(op);
    each_image(w, threads, [&](std::int64_t b) {
        HWY_DYNAMIC_DISPATCH(maxpool_image)
        (w, operand<const float>(run, 0) + b * w.in_size(), operand<float>(run, 1) + b * w.out_size());
    });
}

void maxpool_backward(const cw_op& op, const cw_run& run, int threads) {
    const auto w = window_of(op);
    each_image(w, threads, [&](std::int64_t b) {
        HWY_DYNAMIC_DISPATCH(maxpool_backward_image)
        (w, operand<const float>(run, 0) + b * w.in_size(), operand<const float>(run, 1) + b * w.out_size(),
         operand<const float>(run, 2) + b * w.out_size(), operand<float>(run, 3) + b * w.in_size());
    });
}

void relu_maxpool(const cw_op& op, const cw_run& run, int threads) {
    const auto w = window_of(op);
    each_image(w, threads, [&](std::int64_t b) {
        HWY_DYNAMIC_DISPATCH(relu_maxpool_image)
        (w, operand<float>(run, 0) + b * w.in_size(), operand<float>(run, 1) + b * w.out_size());
    });
}

void relu_maxpool_backward(const cw_op& op, const cw_run& run, int threads) {
    const auto w = window_of(op);
    each_image(w, threads, [&](std::int64_t b) {
        HWY_DYNAMIC_DISPATCH(relu_maxpool_backward_image)
        (w, operand<const float>(run, 0) + b * w.in_size(), operand<const float>(run, 1) + b * w.out_size(),
         operand<const float>(run, 2) + b * w.out_size(), operand<float>(run, 3) + b * w.in_size());
    });
}

void avgpool(const cw_op& op, const cw_run& run, int threads) {
    const auto w = window_of(op);
    each_image(w, threads, [&](std::int64_t b) {
        HWY_DYNAMIC_DISPATCH(avgpool_image)
        (w, operand<const float>(run, 0) + b * w.in_size(), operand<float>(run, 1) + b * w.out_size());
    });
}

void avgpool_backward(const cw_op& op, const cw_run& run, int threads) {
    const auto w = window_of(op);
    each_image(w, threads, [&](std::int64_t b) {
        HWY_DYNAMIC_DISPATCH(avgpool_backward_image)
        (w, operand<const float>(run, 0) + b * w.out_size(), operand<float>(run, 1) + b * w.in_size());
    });
}

}  // namespace

ThreadedKernel pooling_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_MAXPOOL: return {maxpool};
        case CW_MAXPOOL_BACKWARD: return {maxpool_backward};
        case CW_RELU_MAXPOOL: return {relu_maxpool};
        case CW_RELU_MAXPOOL_BACKWARD: return {relu_maxpool_backward};
        case CW_AVGPOOL: return {avgpool};
        case CW_AVGPOOL_BACKWARD: return {avgpool_backward};
        default: return {};
    }
}

}  // namespace causeway::cpu
#endif
