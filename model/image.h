// Layers that move a window over an image [height, width, channels]: their options, their texts and their geometry.
#pragma once

#include "kernels/window.h"
#include "model/layer.h"

namespace causeway {

/// How a window moves. `same` keeps ceil(size / stride) places for odd windows, as PyTorch's padding = (size - 1) / 2.
struct WindowOptions {
    enum class Padding { same, valid, given };

    std::int64_t height = 1, width = 1;
    std::int64_t stride = 1;
    Padding padding = Padding::same;
    std::int64_t pad = 0;  // on all four sides, with Padding::given
    std::int64_t groups = 1;
    bool bias = true;

    bool operator==(const WindowOptions&) const = default;
};

/// Reads the window ("3x3" or "3") and the options behind it into `options`, which holds the kind's defaults.
///
/// allowed  of `stride same valid pad groups nobias`
/// errors   invalid `bad_layer`
Status parse_window(const LayerKind& kind, std::span<const std::string> arguments, std::string_view allowed,
                    WindowOptions& options);
/// The canonical text: what differs from the defaults.
std::string window_text(const WindowOptions& options, const WindowOptions& defaults);

/// The geometry on an input [height, width, channels] with a batch of `rows`.
///
/// errors   invalid `bad_layer`: not an image, smaller than the window, or groups that do not divide
Result<Window> window_on(std::string_view kind, const Boundary& input, const WindowOptions& options,
                         std::int64_t outputs, std::int64_t rows);

}  // namespace causeway
