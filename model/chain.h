// The model: a chain of layers with known shapes, and the table of its tensors. No values and no device here.
//
// A chain is made from the texts of an experiment file (`layers = ["flatten", "dense 64", "relu", "dense 10"]`) or from
// the canonical text that travels and that checkpoints carry. It never changes; copies share their layers.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch_norm_rule.h"
#include "model/layer.h"
#include "model/loss.h"

namespace causeway {

/// Something wrong with the model's description. A caller that has the file maps it to a line and a column.
struct LayerError {
    enum class Place { layer, input, loss };

    std::size_t layer = 0;  // index into `layers`; 0 unless place is layer
    std::string message;
    Place place = Place::layer;

    bool operator==(const LayerError&) const = default;
};

constexpr std::size_t max_layers = 1024;
constexpr std::size_t max_architecture_text = 128 * 1024;
// Elements of one example at a boundary, and of one arena: far above what a node holds, far below an overflow.
constexpr std::int64_t max_boundary_elements = std::int64_t{1} << 28;
constexpr std::int64_t max_arena_elements = std::int64_t{1} << 33;

/// threads  reentrant; a Chain is immutable
class Chain {
public:
    /// All that is wrong at once, in order. Layers after the first wrong one have no known input; their own texts are
    /// still read.
    ///
    /// A text may be a preset (model/presets.h). shapes   input: one example, without the batch
    static tl::expected<Chain, std::vector<LayerError>> parse(const std::vector<std::string>& layers,
                                                              const Shape& input, std::string_view loss,
                                                              BatchNormRule norms = BatchNormRule::average);
    /// Reads what architecture() wrote. Total: any text gives a chain or an error.
    ///
    /// errors   invalid `bad_architecture`
    static Result<Chain> from_architecture(std::string_view text);

    /// "input 8 8 1; flatten; dense 64; relu; dense 10; loss cross-entropy": one chain, one text.
    [[nodiscard]] std::string architecture() const;

    [[nodiscard]] std::size_t layer_count() const { return layers_.size(); }
    [[nodiscard]] const Layer& layer(std::size_t index) const { return *layers_.at(index); }
    /// What flows into layer `index`; `layer_count()` is the last boundary, the loss's input.
    [[nodiscard]] const Boundary& boundary(std::size_t index) const { return boundaries_.at(index); }
    [[nodiscard]] const Shape& input() const { return input_; }
    [[nodiscard]] const LossSpec& loss() const { return loss_; }
    /// Scores that the last layer gives: labels are 0 .. classes() - 1, or as many numbers are the target.
    [[nodiscard]] std::int64_t classes() const { return boundaries_.back().front().shape.back(); }

    [[nodiscard]] const TensorTable& table() const { return table_; }
    /// The tensors of one layer, as indices into the table's list: [first, second).
    [[nodiscard]] std::pair<std::size_t, std::size_t> tensors_of(std::size_t layer) const {
        return {first_tensor_.at(layer), first_tensor_.at(layer + 1)};
    }
    /// How a tensor of the table starts.
    [[nodiscard]] const InitRule& init_rule(std::size_t tensor) const { return init_rules_.at(tensor); }
    /// The part of an arena that belongs to layers [begin, end).
    [[nodiscard]] Range arena_range(ArenaKind kind, std::size_t begin, std::size_t end) const;
    /// Whether training needs the gradient at a boundary: only where a layer before it has trainable parameters.
    [[nodiscard]] bool gradient_needed(std::size_t boundary) const {
        return arena_range(ArenaKind::trainable, 0, boundary).size() > 0;
    }
    /// Elements of the trainable arena.
    [[nodiscard]] std::uint64_t parameter_count() const { return table_.arena_size(ArenaKind::trainable); }

    /// Where a cut falls: "maxpool" is after the first layer of that kind, "relu:2" after the second relu, "6" an
    /// index.
    /// The client has [0, cut). It is at least 1 and at most layer_count() - 1, so both sides have a layer.
    ///
    /// errors   invalid `bad_cut`, with the names that exist
    [[nodiscard]] Result<std::size_t> cut_index(std::string_view cut) const;

    bool operator==(const Chain& other) const { return architecture() == other.architecture(); }

private:
    Chain() = default;
    Status add_text(std::string_view text, bool shapes_known, BatchNormRule norms);
    Status add_layer(std::string_view text, bool shapes_known, BatchNormRule norms);
    Status add_tensors();
    [[nodiscard]] Result<std::size_t> cut_after(std::string_view kind, std::size_t occurrence) const;
    [[nodiscard]] std::vector<std::string> kinds() const;

    Shape input_;
    LossSpec loss_;
    std::vector<std::shared_ptr<const Layer>> layers_;
    std::vector<Boundary> boundaries_;          // layer_count() + 1
    std::vector<std::size_t> first_tensor_{0};  // layer_count() + 1
    TensorTable table_;
    std::vector<InitRule> init_rules_;  // one per tensor of the table
    std::array<std::uint64_t, 3> arena_sizes_{};
};

}  // namespace causeway
