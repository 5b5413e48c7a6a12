// What a layer is: a text, a shape rule, parameters, and work that is prepared once per batch size.
//
// Between layers flows a list of tensors (one in all layers so far; an attention mask would be a second), row-major,
// batch first. A layer keeps no values: parameters live in the model's arenas, activations with whoever runs the layer,
// so one layer serves any number of replicas, versions and batches in flight.
//
// To add a layer: one file that defines `const LayerKind NAME_layer`, one line in layer_registry.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device.h"
#include "kernels/tensor.h"

namespace causeway {

/// One tensor at a boundary; `shape` is of one example (the batch comes first in memory).
struct BoundaryTensor {
    DType dtype = DType::f32;
    Shape shape;
    bool operator==(const BoundaryTensor&) const = default;
};
using Boundary = std::vector<BoundaryTensor>;

/// How a parameter starts. `uniform` draws from [-bound, bound).
struct InitRule {
    enum class Kind { zeros, ones, uniform };
    Kind kind = Kind::zeros;
    double bound = 0;
};

/// A tensor that a layer needs, before the chain gives it a name and a place in its arena.
struct ParameterSpec {
    std::string name;  // "weight": the chain makes "dense1.weight" of it
    Shape shape;
    ArenaKind arena = ArenaKind::trainable;
    InitRule init;
    Exchange exchange = Exchange::shared;
};

/// Whether a plan will only run forward; at a run, whether it is a step of training.
enum class Purpose { inference, training };

/// Whether a forward run is the batch's first, or repeats it for a backward that needs what was given up (`recompute`):
/// it gives the same values and observes nothing a second time.
enum class Pass { first, again };

/// What random choices of a forward run depend on, besides the layer: which batch, and which rows of it.
struct Draws {
    std::uint64_t seed = 0;
    std::uint64_t round = 0;
    std::uint64_t node = 0;       // node_key of its name
    std::uint64_t step = 0;       // batch of the round
    std::uint64_t first_row = 0;  // of the batch: above 0 for a later microbatch
};

/// The operands of one forward run, all in device memory, for the number of rows that the plan was prepared for.
struct LayerForward {
    std::span<const Operand> inputs;
    std::span<const Operand> outputs;
    std::span<const Operand> parameters;  // in the order of Layer::parameters
    void* scratch = nullptr;              // LayerPlan::scratch_bytes, kept from a forward to its backward
    void* temporary = nullptr;            // LayerPlan::temporary_bytes, this call's only: layers share it
    std::uint64_t version = 0;            // of the parameters: equal ones have equal values; above 0
    Purpose purpose = Purpose::training;
    Pass pass = Pass::first;
    std::uint32_t layer = 0;  // index in the chain
    Draws draws;
};

/// The operands of one backward run; `forward` is what the forward run had.
struct LayerBackward {
    LayerForward forward;
    std::span<const Operand> output_gradients;
    std::span<const Operand> input_gradients;      // empty: nobody needs them
    std::span<const Operand> parameter_gradients;  // of the trainable parameters
    ops::Write write = ops::Write::overwrite;      // whether parameter gradients are set or added to
};

/// A layer's work for one number of rows, prepared on one device.
///
/// threads  bound to the trainer thread; runs never allocate
class LayerPlan {
public:
    virtual ~LayerPlan() = default;
    virtual Status forward(const LayerForward& call) = 0;
    virtual Status backward(const LayerBackward& call) = 0;
    [[nodiscard]] virtual std::uint64_t scratch_bytes() const { return 0; }
    [[nodiscard]] virtual std::uint64_t temporary_bytes() const { return 0; }
};

/// threads  reentrant; a layer is immutable
class Layer {
public:
    virtual ~Layer() = default;

    [[nodiscard]] virtual std::string_view kind() const = 0;
    /// The canonical text: parse_layer(text()) gives an equal layer.
    [[nodiscard]] virtual std::string text() const = 0;
    /// errors   invalid: the layer cannot take such an input; the message says what it takes
    [[nodiscard]] virtual Result<Boundary> infer(const Boundary& input) const = 0;
    /// For an input that `infer` accepted.
    [[nodiscard]] virtual std::vector<ParameterSpec> parameters(const Boundary&) const { return {}; }
    /// Whether the output is the input under another shape: it then shares the input's memory and is never run.
    [[nodiscard]] virtual bool is_view() const { return false; }
    /// Whether it may run in place: its output over its input, and its input's gradient over its output's.
    [[nodiscard]] virtual bool runs_in_place() const { return false; }
    /// Whether its backward looks at its own output, which a next layer that runs in place would overwrite.
    [[nodiscard]] virtual bool backward_reads_output() const { return true; }
    /// errors   unsupported: the device lacks a required kind
    /// cost     milliseconds at the first time for these shapes on this device
    [[nodiscard]] virtual Result<std::unique_ptr<LayerPlan>> prepare(PlanCache& plans, const Boundary& input,
                                                                     std::int64_t rows, Purpose purpose) const = 0;
    /// The work of `before`, which runs in place on `input`, and of this layer behind it in one, where the device has a
    /// fused kind for it: the same bits, the values between them included. Null: there is none.
    [[nodiscard]] virtual Result<std::unique_ptr<LayerPlan>> prepare_fused(PlanCache&, const Layer& /*before*/,
                                                                           const Boundary& /*input*/,
                                                                           std::int64_t /*rows*/) const {
        return std::unique_ptr<LayerPlan>();
    }
};

/// A registry entry.
struct LayerKind {
    std::string_view name;
    std::string_view form;  // "dense UNITS", for messages
    Result<std::shared_ptr<const Layer>> (*parse)(std::span<const std::string> arguments);
};

/// All kinds, in the order in which messages list them.
std::span<const LayerKind* const> layer_kinds();

constexpr std::size_t max_layer_text = 256;

/// "dense 64": a kind and its arguments.
///
/// errors   invalid `bad_layer`: unknown kind (with the nearest one), or wrong arguments (with the form)
Result<std::shared_ptr<const Layer>> parse_layer(std::string_view text);

// ---- shared by the layers' files

/// errors   invalid `bad_layer`: "relu takes no arguments, as in `relu`"
Status expect_arguments(const LayerKind& kind, std::span<const std::string> arguments, std::size_t count);
/// A whole number in [least, most].
Result<std::int64_t> parse_extent(const LayerKind& kind, std::string_view text, std::int64_t least, std::int64_t most);
/// errors   invalid `bad_layer`: not exactly one f32 tensor
Status expect_one_float_tensor(std::string_view kind, const Boundary& input);
/// Whether a layer's output may lie where its input does, which `before` has made: nobody reads that again.
inline bool overwrites(const Layer& layer, const Layer& before) {
    return layer.runs_in_place() && !before.is_view() && !before.backward_reads_output();
}
/// Rows times the elements of one example.
std::int64_t batch_elements(const Boundary& boundary, std::int64_t rows);

}  // namespace causeway
