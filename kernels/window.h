// Windows that move over images: the geometry of convolutions and pools, read from an op and checked.
//
// Channels come last. Every backend reads its ops through this, so that the arithmetic of padding stands once.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/backend.h"

namespace causeway {

constexpr int window_integers = 9;  // integers[0..8] of an op with a window

/// The letters of backend.h in words.
struct Window {
    std::int64_t batch = 0;
    std::int64_t height = 0, width = 0, channels = 0;        // in
    std::int64_t out_height = 0, out_width = 0, outputs = 0;  // out
    std::int64_t window_height = 0, window_width = 0;
    std::int64_t stride = 1;
    std::int64_t above = 0, below = 0, left = 0, right = 0;  // padding
    std::int64_t groups = 1;

    [[nodiscard]] std::int64_t in_size() const { return height * width * channels; }          // of one image
    [[nodiscard]] std::int64_t out_size() const { return out_height * out_width * outputs; }  // of one image
};

/// Whether the windows cover each place of the image exactly once.
bool tiles(const Window& w);
/// The geometry of an op whose operands fit its kind.
Window window_of(const cw_op& op);
/// errors   CW_INVALID: the dimensions contradict each other
cw_status check_window(const cw_op& op, std::string_view kind, cw_error* error);

/// How far a window reaches along one axis: the places [begin, end) of the image that it covers, and the first's place
/// in the window.
struct Reach {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t offset;
};
constexpr Reach reach_of(std::int64_t place, std::int64_t stride, std::int64_t before, std::int64_t window,
                         std::int64_t extent) {
    const std::int64_t start = place * stride - before;
    const std::int64_t begin = start < 0 ? 0 : start;
    const std::int64_t end = start + window < extent ? start + window : extent;
    return {begin, end, begin - start};
}

}  // namespace causeway
