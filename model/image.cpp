// Words to numbers, and numbers to geometry. Sizes come from files and peers: each is bounded before it is multiplied.
#include "model/image.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway {
namespace {

constexpr std::int64_t max_extent = 1024;  // of a window, a stride or a padding

tl::unexpected<Error> bad_layer(std::string message) {
    return fail(ErrorKind::invalid, "bad_layer", std::move(message));
}

Status parse_size(const LayerKind& kind, std::string_view text, WindowOptions& options) {
    const auto cross = text.find('x');
    TRY_ASSIGN(options.height, parse_extent(kind, text.substr(0, cross), 1, max_extent));
    options.width = options.height;
    if (cross != std::string_view::npos) {
        TRY_ASSIGN(options.width, parse_extent(kind, text.substr(cross + 1), 1, max_extent));
    }
    return {};
}

/// The padding in front and behind, along one axis.
struct Pads {
    std::int64_t before, after;
};
Pads pads_of(const WindowOptions& options, std::int64_t window) {
    switch (options.padding) {
        case WindowOptions::Padding::same:
            return {(window - 1) / 2, window / 2};
        case WindowOptions::Padding::given:
            return {options.pad, options.pad};
        case WindowOptions::Padding::valid:
            break;
    }
    return {0, 0};
}

}  // namespace

Status parse_window(const LayerKind& kind, std::span<const std::string> arguments, std::string_view allowed,
                    WindowOptions& options) {
    using Padding = WindowOptions::Padding;
    if (arguments.empty()) {
        return bad_layer(fmt::format("{} needs the size of its window: write \"{}\"", kind.name, kind.form));
    }
    TRY(parse_size(kind, arguments[0], options));
    const auto words = split_text(allowed, ' ');
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        const std::string& word = arguments[i];
        const bool last = i + 1 == arguments.size();
        if (std::ranges::find(words, word) == words.end()) {
            return bad_layer(
                fmt::format("\"{}\" is not an option of {}: write \"{}\"", word.substr(0, 40), kind.name, kind.form));
        }
        if (word == "same" || word == "valid") {
            options.padding = word == "same" ? Padding::same : Padding::valid;
        } else if (word == "nobias") {
            options.bias = false;
        } else if (last) {
            return bad_layer(fmt::format("\"{}\" needs a number: write \"{}\"", word, kind.form));
        } else if (word == "stride") {
            TRY_ASSIGN(options.stride, parse_extent(kind, arguments[++i], 1, max_extent));
        } else if (word == "pad") {
            TRY_ASSIGN(options.pad, parse_extent(kind, arguments[++i], 0, max_extent));
            options.padding = options.pad == 0 ? Padding::valid : Padding::given;
        } else {
            TRY_ASSIGN(options.groups, parse_extent(kind, arguments[++i], 1, std::int64_t{1} << 20));
        }
    }
    // A pool's stride is its window unless it says otherwise; 0 stands for that in its defaults.
    options.stride = options.stride == 0 ? options.height : options.stride;
    return {};
}

std::string window_text(const WindowOptions& options, const WindowOptions& defaults) {
    auto text = options.height == options.width && defaults.stride == 0
                    ? std::to_string(options.height)
                    : fmt::format("{}x{}", options.height, options.width);
    if (options.stride != (defaults.stride == 0 ? options.height : defaults.stride)) {
        text += fmt::format(" stride {}", options.stride);
    }
    if (options.padding != defaults.padding) {
        text += options.padding == WindowOptions::Padding::valid  ? " valid"
                : options.padding == WindowOptions::Padding::same ? " same"
                                                                  : fmt::format(" pad {}", options.pad);
    }
    text += options.groups == 1 ? "" : fmt::format(" groups {}", options.groups);
    return text + (options.bias ? "" : " nobias");
}

Result<Window> window_on(std::string_view kind, const Boundary& input, const WindowOptions& options,
                         std::int64_t outputs, std::int64_t rows) {
    TRY(expect_one_float_tensor(kind, input));
    const Shape& shape = input.front().shape;
    if (shape.size() != 3) {
        return bad_layer(fmt::format("{} takes an image [height, width, channels], not {}", kind, to_string(shape)));
    }
    const auto [above, below] = pads_of(options, options.height);
    const auto [left, right] = pads_of(options, options.width);
    Window window{.batch = rows,
                  .height = shape[0],
                  .width = shape[1],
                  .channels = shape[2],
                  .outputs = outputs,
                  .window_height = options.height,
                  .window_width = options.width,
                  .stride = options.stride,
                  .above = above,
                  .below = below,
                  .left = left,
                  .right = right,
                  .groups = options.groups};
    const auto tall = shape[0] + above + below - options.height;
    const auto wide = shape[1] + left + right - options.width;
    if (tall < 0 || wide < 0) {
        return bad_layer(fmt::format("{}'s window of {}x{} is larger than the image {}", kind, options.height,
                                     options.width, to_string(shape)));
    }
    window.out_height = tall / options.stride + 1;
    window.out_width = wide / options.stride + 1;
    if (shape[2] % options.groups != 0 || outputs % options.groups != 0) {
        return bad_layer(
            fmt::format("{} groups divide neither {} channels in nor {} out", options.groups, shape[2], outputs));
    }
    return window;
}

}  // namespace causeway
