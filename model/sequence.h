// Layers that run one after another inside one layer: the branches of a residual block.
//
// A sequence is to its block what a chain is to a model, but without arenas: parameters come from the block's own list,
// in order, and inner values live in the block's scratch memory. An empty sequence passes its input on.
#pragma once

#include "model/layer.h"

namespace causeway {

class Sequence {
public:
    struct Part {
        std::string name;  // of its parameters: "conv1" makes "conv1.weight"
        std::shared_ptr<const Layer> layer;
    };
    explicit Sequence(std::vector<Part> parts) : parts_(std::move(parts)) {}

    [[nodiscard]] bool empty() const { return parts_.empty(); }
    /// errors   as Layer::infer of the first layer that refuses
    [[nodiscard]] Result<std::vector<Boundary>> boundaries(const Boundary& input) const;
    /// For an input that all layers accept.
    [[nodiscard]] std::vector<ParameterSpec> parameters(const Boundary& input) const;
    [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

private:
    std::vector<Part> parts_;
};

/// A sequence prepared for a number of rows. It needs scratch_bytes() at one address from its forward to its backward,
/// and temporary_bytes() during each call: the layers' own, and in the backward two buffers of inner gradients.
class SequencePlan {
public:
    static Result<SequencePlan> make(PlanCache& plans, const Sequence& sequence, const Boundary& input,
                                     std::int64_t rows, Purpose purpose);
    [[nodiscard]] std::uint64_t scratch_bytes() const { return scratch_bytes_; }
    [[nodiscard]] std::uint64_t temporary_bytes() const { return turns_ + (training_ ? 2 * turn_bytes_ : 0); }
    /// How many of the block's parameters are its own, and how many of them are trainable.
    [[nodiscard]] std::size_t parameters() const { return parameters_; }
    [[nodiscard]] std::size_t gradients() const { return gradients_; }

    /// `call` is as a layer's: inputs, outputs and scratch of the sequence, and its own parameters.
    Status forward(const LayerForward& call);
    /// Inner gradients take turns in two buffers of the temporary memory.
    Status backward(const LayerBackward& call);

private:
    struct Step {
        std::unique_ptr<LayerPlan> plan;
        std::size_t parameters = 0, gradients = 0;
        std::uint64_t scratch = 0;  // offsets into the scratch memory
        std::uint64_t output = 0;
        std::uint64_t elements = 0;  // of the output
    };
    [[nodiscard]] Operand value(const LayerForward& call, std::size_t boundary) const;
    [[nodiscard]] Operand slope(const LayerForward& call, std::size_t boundary) const;

    std::vector<Step> steps_;
    bool training_ = false;
    std::uint64_t scratch_bytes_ = 0;
    std::uint64_t turns_ = 0;       // offset of the two gradient buffers in the temporary memory
    std::uint64_t turn_bytes_ = 0;  // of each
    std::size_t parameters_ = 0, gradients_ = 0;
};

}  // namespace causeway
