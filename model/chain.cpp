// Reading a chain: texts, then shapes, then the tensor table; all that is wrong is reported together.
#include "model/chain.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "common/text.h"
#include "model/presets.h"

namespace causeway {
namespace {

constexpr std::size_t max_input_rank = 4;  // time or depth, height, width, channels
using Errors = std::vector<LayerError>;

/// Shapes come from files and peers: their product is bounded before anything multiplies it.
void check_input(const Shape& input, Errors& errors) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : input) {
        const bool fits = extent >= 1 && extent <= max_boundary_elements / elements;
        elements = fits ? elements * extent : max_boundary_elements + 1;
        if (!fits) {
            break;
        }
    }
    if (input.empty() || input.size() > max_input_rank || elements > max_boundary_elements) {
        const Shape shown(input.begin(), input.begin() + std::min<std::ptrdiff_t>(std::ssize(input), 8));
        errors.push_back({0,
                          fmt::format("the input shape {} needs 1 to {} dimensions, each at least 1, and at most {} "
                                      "elements",
                                      to_string(shown), max_input_rank, max_boundary_elements),
                          LayerError::Place::input});
    }
}

LossSpec read_loss(std::string_view text, Errors& errors) {
    auto loss = parse_loss(text);
    if (!loss) {
        errors.push_back({0, loss.error().message, LayerError::Place::loss});
        return {};
    }
    return *std::move(loss);
}

/// Counts by division, so that no product of hostile extents overflows.
bool boundary_fits(const Boundary& boundary) {
    std::int64_t left = max_boundary_elements;
    for (const BoundaryTensor& tensor : boundary) {
        std::int64_t elements = 1;
        for (const std::int64_t extent : tensor.shape) {
            if (extent < 1 || extent > max_boundary_elements / elements) {
                return false;
            }
            elements *= extent;
        }
        left -= elements;
        if (left < 0) {
            return false;
        }
    }
    return true;
}

/// The loss wants one row of scores per example: for at least two classes, or for each number of the target.
void check_scores(const Boundary& last, const LossSpec& loss, Errors& errors) {
    const bool one_row = last.size() == 1 && last.front().dtype == DType::f32 && last.front().shape.size() == 1 &&
                         last.front().shape[0] >= loss.least_outputs();
    if (!one_row) {
        errors.push_back({0,
                          fmt::format("{} takes one row of at least {} scores per example, but the last layer gives "
                                      "{}; end with \"{}\"",
                                      to_text(loss), loss.least_outputs(),
                                      last.empty() ? "nothing" : to_string(last.front().shape),
                                      loss.numeric() ? "dense OUTPUTS" : "dense CLASSES"),
                          LayerError::Place::loss});
    } else if (!loss.weights.empty() && std::ssize(loss.weights) != last.front().shape[0]) {
        errors.push_back({0,
                          fmt::format("the loss has {} class weights, the last layer gives {} scores",
                                      loss.weights.size(), last.front().shape[0]),
                          LayerError::Place::loss});
    }
}

tl::unexpected<Error> bad_architecture(std::string message) {
    return fail(ErrorKind::invalid, "bad_architecture", "architecture: " + std::move(message));
}

Result<Shape> parse_input(std::string_view text) {
    Shape shape;
    for (const std::string& word : split_text(text, ' ')) {
        std::int64_t extent = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), extent);
        if (error != std::errc{} || end != word.data() + word.size() || shape.size() == max_input_rank) {
            return bad_architecture("the input is not 1 to 4 whole numbers");
        }
        shape.push_back(extent);
    }
    return shape;
}

std::string all_messages(const Errors& errors) {
    std::vector<std::string> lines;
    for (const LayerError& error : errors) {
        const bool of_layer = error.place == LayerError::Place::layer;
        lines.push_back(of_layer ? fmt::format("layer {}: {}", error.layer, error.message) : error.message);
    }
    return join(lines, "; ");
}

}  // namespace

tl::expected<Chain, Errors> Chain::parse(const std::vector<std::string>& layers, const Shape& input,
                                         std::string_view loss, BatchNormRule norms) {
    Errors errors;
    check_input(input, errors);
    LossSpec loss_spec = read_loss(loss, errors);
    if (layers.empty() || layers.size() > max_layers) {
        errors.push_back({0, fmt::format("a model has 1 to {} layers, not {}", max_layers, layers.size())});
        return tl::unexpected(std::move(errors));
    }
    Chain chain;
    chain.input_ = input;
    chain.loss_ = std::move(loss_spec);
    chain.boundaries_.push_back({{DType::f32, input}});
    bool shapes_known =
        std::ranges::none_of(errors, [](const LayerError& error) { return error.place == LayerError::Place::input; });
    for (std::size_t i = 0; i < layers.size(); ++i) {
        auto added = chain.add_text(layers[i], shapes_known, norms);
        if (!added) {
            shapes_known = false;
            errors.push_back({i, std::move(added).error().message});
        }
    }
    if (shapes_known) {
        check_scores(chain.boundaries_.back(), chain.loss_, errors);
    }
    if (!errors.empty()) {
        return tl::unexpected(std::move(errors));
    }
    return chain;
}

/// A layer, or a preset that stands for several.
Status Chain::add_text(std::string_view text, bool shapes_known, BatchNormRule norms) {
    TRY_ASSIGN(const auto preset, expand_preset(text));
    for (const std::string& layer : preset.value_or(std::vector<std::string>{std::string(text)})) {
        TRY(add_layer(layer, shapes_known, norms));
    }
    return layers_.size() <= max_layers
               ? Status{}
               : fail(ErrorKind::invalid, "bad_layer",
                      fmt::format("with it the model has more than {} layers", max_layers));
}

Status Chain::add_layer(std::string_view text, bool shapes_known, BatchNormRule norms) {
    TRY_ASSIGN(auto layer, parse_layer(text));
    if (shapes_known) {
        TRY_ASSIGN(layer, with_batch_norm_rule(std::move(layer), boundaries_.back(), norms));
    }
    layers_.push_back(std::move(layer));
    if (!shapes_known) {
        return {};
    }
    TRY_ASSIGN(Boundary output, layers_.back()->infer(boundaries_.back()));
    if (!boundary_fits(output)) {
        return fail(ErrorKind::invalid, "bad_layer",
                    fmt::format("its output has more than {} elements per example", max_boundary_elements));
    }
    TRY(add_tensors());
    boundaries_.push_back(std::move(output));
    return {};
}

/// Names are kind, occurrence of the kind (from 1), parameter: "dense2.bias".
Status Chain::add_tensors() {
    const Layer& layer = *layers_.back();
    const auto occurrence =
        std::ranges::count_if(layers_, [&](const auto& other) { return other->kind() == layer.kind(); });
    for (ParameterSpec& parameter : layer.parameters(boundaries_.back())) {
        const auto begin = arena_sizes_[static_cast<std::size_t>(parameter.arena)];
        std::int64_t left = max_arena_elements - static_cast<std::int64_t>(begin);  // divided, never overflows
        for (const std::int64_t extent : parameter.shape) {
            left /= extent;
        }
        if (left < 1) {
            return fail(ErrorKind::invalid, "bad_layer",
                        fmt::format("with it the model has more than {} parameters", max_arena_elements));
        }
        arena_sizes_[static_cast<std::size_t>(parameter.arena)] +=
            static_cast<std::uint64_t>(element_count(parameter.shape));
        init_rules_.push_back(parameter.init);
        table_.tensors.push_back({.name = fmt::format("{}{}.{}", layer.kind(), occurrence, parameter.name),
                                  .dtype = DType::f32,
                                  .shape = std::move(parameter.shape),
                                  .layer = static_cast<std::uint32_t>(layers_.size() - 1),
                                  .arena = parameter.arena,
                                  .offset = begin,
                                  .exchange = parameter.exchange});
    }
    first_tensor_.push_back(table_.tensors.size());
    return {};
}

Result<Chain> Chain::from_architecture(std::string_view text) {
    if (text.size() > max_architecture_text) {
        return bad_architecture(fmt::format("longer than {} bytes", max_architecture_text));
    }
    auto parts = split_text(text, ';');
    for (std::string& part : parts) {
        part = std::string(trim(part));
    }
    if (parts.size() < 3 || !parts.front().starts_with("input ") || !parts.back().starts_with("loss ")) {
        return bad_architecture("it must read \"input SHAPE; LAYER; ...; loss NAME\"");
    }
    TRY_ASSIGN(const Shape input, parse_input(std::string_view(parts.front()).substr(6)));
    const std::vector<std::string> layers(parts.begin() + 1, parts.end() - 1);
    auto chain = parse(layers, input, std::string_view(parts.back()).substr(5));
    if (!chain) {
        return bad_architecture(all_messages(chain.error()));
    }
    return *std::move(chain);
}

std::string Chain::architecture() const {
    std::string text = "input";
    for (const std::int64_t extent : input_) {
        text += fmt::format(" {}", extent);
    }
    for (const auto& layer : layers_) {
        text += "; " + layer->text();
    }
    return text + "; loss " + to_text(loss_);
}

Range Chain::arena_range(ArenaKind kind, std::size_t begin, std::size_t end) const {
    ASSERT(begin <= end && end <= layer_count());
    Range range{0, 0};
    for (const TensorInfo& tensor : table_.tensors) {
        if (tensor.arena == kind && tensor.layer < begin) {
            range = {tensor.range().end, tensor.range().end};
        } else if (tensor.arena == kind && tensor.layer < end) {
            range.end = tensor.range().end;
        }
    }
    return range;
}

std::vector<std::string> Chain::kinds() const {
    std::vector<std::string> names;
    for (const auto& layer : layers_) {
        if (std::ranges::find(names, layer->kind()) == names.end()) {
            names.emplace_back(layer->kind());
        }
    }
    return names;
}

/// The boundary behind the nth layer of a kind, or who is meant instead.
Result<std::size_t> Chain::cut_after(std::string_view kind, std::size_t occurrence) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        found += layers_[i]->kind() == kind ? 1 : 0;
        if (found == occurrence) {
            return i + 1;
        }
    }
    if (found > 0) {
        return fail(ErrorKind::invalid, "bad_cut",
                    fmt::format("cut: the model has {} {} layer{}, there is no {}:{}", found, kind,
                                found == 1 ? "" : "s", kind, occurrence));
    }
    const auto names = kinds();
    const auto nearest = nearest_name(kind, names);
    return fail(ErrorKind::invalid, "bad_cut",
                fmt::format("cut: the model has no layer \"{}\"; {}", kind.substr(0, 40),
                            nearest ? "did you mean \"" + *nearest + "\"?" : "it has " + join(names, ", ")));
}

namespace {

std::optional<std::size_t> whole_number(std::string_view text) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

Result<std::size_t> Chain::cut_index(std::string_view cut) const {
    auto place = whole_number(cut);
    if (!place) {
        const auto colon = cut.find(':');
        const auto occurrence = colon == std::string_view::npos ? std::size_t{1} : whole_number(cut.substr(colon + 1));
        if (!occurrence || *occurrence == 0) {
            return fail(ErrorKind::invalid, "bad_cut",
                        fmt::format("cut: \"{}\" is not a layer, a layer and its number from 1 (\"relu:2\") or an "
                                    "index",
                                    cut.substr(0, 40)));
        }
        TRY_ASSIGN(place, cut_after(cut.substr(0, colon), *occurrence));
    }
    if (*place < 1 || *place >= layer_count()) {
        return fail(
            ErrorKind::invalid, "bad_cut",
            fmt::format("cut: {} leaves one side without a layer; it must be from 1 to {}", *place, layer_count() - 1));
    }
    return *place;
}

}  // namespace causeway
