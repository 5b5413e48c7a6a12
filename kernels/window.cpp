// Which operand holds which dimension, kind by kind. Thread: any; reentrant.
#include "kernels/window.h"

#include <fmt/format.h>

#include "kernels/kinds.h"

namespace causeway {
namespace {

/// Operand numbers: image in, image out, weights (-1: a pool).
struct Places {
    int in;
    int out;
    int weights;
};

Places places_of(const cw_op& op) {
    switch (op.kind) {
        case CW_CONVOLUTION: return {0, op.operand_count - 1, 1};
        case CW_CONVOLUTION_BACKWARD_DATA: return {2, 0, 1};
        case CW_CONVOLUTION_BACKWARD_WEIGHTS: return {1, 0, 2};
        case CW_AVGPOOL_BACKWARD: return {1, 0, -1};
        default: return {0, 1, -1};
    }
}

constexpr std::int64_t most = std::int64_t{1} << 24;  // of an attribute: sums of them stay far from overflow

bool in_range(const Window& w) {
    for (const auto value : {w.window_height, w.window_width, w.stride, w.groups}) {
        if (value < 1 || value > most) {
            return false;
        }
    }
    for (const auto value : {w.above, w.below, w.left, w.right}) {
        if (value < 0 || value > most) {
            return false;
        }
    }
    return w.height >= 1 && w.width >= 1 && w.channels >= 1 && w.outputs >= 1;
}

bool fits(std::int64_t extent, std::int64_t padding, std::int64_t window, std::int64_t stride, std::int64_t out) {
    const auto slack = extent + padding - window;
    return slack >= 0 && slack / stride + 1 == out;
}

}  // namespace

bool tiles(const Window& w) {
    return w.stride == w.window_height && w.stride == w.window_width && w.above + w.below + w.left + w.right == 0 &&
           w.out_height * w.stride == w.height && w.out_width * w.stride == w.width;
}

Window window_of(const cw_op& op) {
    const auto places = places_of(op);
    const auto* in = op.operands[places.in].dims;
    const auto* out = op.operands[places.out].dims;
    const auto* integers = op.integers;
    Window w{.batch = in[0], .height = in[1], .width = in[2], .channels = in[3], .out_height = out[1],
             .out_width = out[2], .outputs = out[3], .window_height = integers[7], .window_width = integers[8],
             .stride = integers[1], .above = integers[2], .below = integers[3], .left = integers[4],
             .right = integers[5], .groups = integers[6]};
    if (places.weights >= 0) {
        w.window_height = op.operands[places.weights].dims[1];
        w.window_width = op.operands[places.weights].dims[2];
    }
    return w;
}

cw_status check_window(const cw_op& op, std::string_view kind, cw_error* error) {
    const auto places = places_of(op);
    const auto w = window_of(op);
    const bool convolution = places.weights >= 0;
    if (!in_range(w) || (convolution && (op.integers[7] != 0 || op.integers[8] != 0))) {
        return fail_with(error, CW_INVALID, fmt::format("{}: a size, stride or padding is out of range", kind));
    }
    if (!fits(w.height, w.above + w.below, w.window_height, w.stride, w.out_height) ||
        !fits(w.width, w.left + w.right, w.window_width, w.stride, w.out_width)) {
        return fail_with(error, CW_INVALID, fmt::format("{}: the output's size is not the window's", kind));
    }
    if (convolution) {
        const auto inputs = op.operands[places.weights].dims[3];
        if (w.channels != inputs * w.groups || w.outputs % w.groups != 0) {
            return fail_with(error, CW_INVALID, fmt::format("{}: the groups do not divide the channels", kind));
        }
    } else if (w.groups != 1 || w.above >= w.window_height || w.below >= w.window_height ||
               w.left >= w.window_width || w.right >= w.window_width) {
        return fail_with(error, CW_INVALID, fmt::format("{}: padding must be smaller than the window", kind));
    }
    return CW_OK;
}

}  // namespace causeway
