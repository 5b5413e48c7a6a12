// The layers that exist, one line each, and what their parsers share.
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "common/text.h"
#include "model/layer.h"

// One line per layer; X is applied to the name of its file.
#define CAUSEWAY_LAYERS(X) \
    X(dense)               \
    X(relu)                \
    X(gelu)                \
    X(silu)                \
    X(flatten)             \
    X(conv)                \
    X(maxpool)             \
    X(avgpool)             \
    X(globalavgpool)       \
    X(dropout)             \
    X(layernorm)           \
    X(groupnorm)           \
    X(batchnorm)           \
    X(residual)

namespace causeway {

#define CAUSEWAY_DECLARE(name) extern const LayerKind name##_layer;
CAUSEWAY_LAYERS(CAUSEWAY_DECLARE)
#undef CAUSEWAY_DECLARE

std::span<const LayerKind* const> layer_kinds() {
#define CAUSEWAY_ENTRY(name) &name##_layer,
    static const std::array kinds = {CAUSEWAY_LAYERS(CAUSEWAY_ENTRY)};
#undef CAUSEWAY_ENTRY
    return kinds;
}

namespace {

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (std::string& word : split_text(text, ' ')) {
        if (!word.empty()) {
            words.push_back(std::move(word));
        }
    }
    return words;
}

tl::unexpected<Error> unknown_layer(const std::string& name) {
    std::vector<std::string> names;
    for (const LayerKind* kind : layer_kinds()) {
        names.emplace_back(kind->name);
    }
    const auto nearest = nearest_name(name, names);
    const auto hint =
        nearest ? fmt::format("did you mean \"{}\"?", *nearest) : fmt::format("the layers are {}", join(names, ", "));
    return fail(ErrorKind::invalid, "bad_layer", fmt::format("there is no layer \"{}\"; {}", name.substr(0, 40), hint));
}

}  // namespace

Result<std::shared_ptr<const Layer>> parse_layer(std::string_view text) {
    if (text.size() > max_layer_text) {
        return fail(ErrorKind::invalid, "bad_layer", fmt::format("a layer is at most {} bytes long", max_layer_text));
    }
    const auto words = words_of(text);
    if (words.empty()) {
        return fail(ErrorKind::invalid, "bad_layer", "a layer's text is empty; write for example \"dense 64\"");
    }
    for (const LayerKind* kind : layer_kinds()) {
        if (kind->name == words.front()) {
            return kind->parse(std::span(words).subspan(1));
        }
    }
    return unknown_layer(words.front());
}

Status expect_arguments(const LayerKind& kind, std::span<const std::string> arguments, std::size_t count) {
    if (arguments.size() == count) {
        return {};
    }
    return fail(
        ErrorKind::invalid, "bad_layer",
        fmt::format("{} takes {} argument{}, not {}: write \"{}\"", kind.name,
                    count == 0 ? "no" : std::to_string(count), count == 1 ? "" : "s", arguments.size(), kind.form));
}

Result<std::int64_t> parse_extent(const LayerKind& kind, std::string_view text, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
        return fail(ErrorKind::invalid, "bad_layer",
                    fmt::format("\"{}\" is not a whole number from {} to {}: write \"{}\"", text.substr(0, 40), least,
                                most, kind.form));
    }
    return value;
}

Status expect_one_float_tensor(std::string_view kind, const Boundary& input) {
    if (input.size() == 1 && input.front().dtype == DType::f32) {
        return {};
    }
    return fail(ErrorKind::invalid, "bad_layer", fmt::format("{} takes one tensor of f32", kind));
}

std::int64_t batch_elements(const Boundary& boundary, std::int64_t rows) {
    std::int64_t elements = 0;
    for (const BoundaryTensor& tensor : boundary) {
        elements += element_count(tensor.shape);
    }
    return rows * elements;
}

}  // namespace causeway
