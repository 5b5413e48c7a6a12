// residual N: the basic block of a residual network, as one layer of the chain, so that a cut falls before or after it.
//
//   y = relu(norm(conv(relu(norm(conv(x))))) + shortcut(x)), convolutions 3x3 without a bias, the first strided;
// the shortcut is x itself, or norm(conv 1x1) where the shape changes. The norm is batchnorm, with `local` one whose
// tensors stay with their node, or `groupnorm G`.
// Source: He et al. 2016, figure 2 and option B; torchvision's BasicBlock.
#include <algorithm>

#include <fmt/format.h>

#include "model/sequence.h"

namespace causeway {
extern const LayerKind residual_layer;
namespace {

constexpr std::int64_t max_residual_filters = std::int64_t{1} << 20;

/// Scratch memory: both branches' own. Temporary memory: theirs, one after the other, and behind it two values: the
/// shortcut's output or the sum's gradient, and the shortcut's part of the input's gradient. The shortcut's output is
/// not kept, because its last layer, a norm, does not read it again.
class ResidualPlan : public LayerPlan {
public:
    ResidualPlan(SequencePlan main, SequencePlan shortcut, bool identity, std::uint64_t inputs, std::uint64_t outputs)
        : main_(std::move(main)),
          shortcut_(std::move(shortcut)),
          identity_(identity),
          inputs_(inputs),
          outputs_(outputs) {}

    Status prepare(PlanCache& plans) {
        TRY_ASSIGN(add_, plans.get(ops::axpy()));
        TRY_ASSIGN(relu_, plans.get(ops::relu()));
        TRY_ASSIGN(relu_backward_, plans.get(ops::relu_backward()));
        return {};
    }
    std::uint64_t scratch_bytes() const override { return main_.scratch_bytes() + shortcut_.scratch_bytes(); }
    std::uint64_t temporary_bytes() const override {
        return rest() + bytes_of(outputs_) + (identity_ ? 0 : bytes_of(inputs_));
    }

    Status forward(const LayerForward& call) override {
        LayerForward inner = call;
        inner.parameters = call.parameters.first(main_.parameters());
        TRY(main_.forward(inner));
        const Operand beside = identity_ ? call.inputs[0] : part(call, 0, outputs_);
        if (!identity_) {
            inner = shortcut_call(call);
            inner.outputs = std::span(&beside, 1);
            TRY(shortcut_.forward(inner));
        }
        TRY(add_->run({beside, call.outputs[0]}, {1.0}));
        return relu_->run({call.outputs[0], call.outputs[0]});
    }

    /// The sum passes one gradient to both branches; the input's is the sum of theirs.
    Status backward(const LayerBackward& call) override {
        const LayerForward& seen = call.forward;
        const Operand slope = part(seen, 0, outputs_);
        TRY(relu_backward_->run({seen.outputs[0], call.output_gradients[0], slope}));
        LayerBackward inner = call;
        inner.output_gradients = std::span(&slope, 1);
        inner.forward.parameters = seen.parameters.first(main_.parameters());
        inner.parameter_gradients = call.parameter_gradients.first(main_.gradients());
        TRY(main_.backward(inner));
        const bool wanted = !call.input_gradients.empty();
        if (identity_) {
            return wanted ? add_->run({slope, call.input_gradients[0]}, {1.0}) : Status{};
        }
        const Operand other = part(seen, bytes_of(outputs_), inputs_);
        inner.forward = shortcut_call(seen);
        inner.forward.outputs = std::span(&slope, 1);  // any values: the norm at its end does not read them
        inner.parameter_gradients = call.parameter_gradients.subspan(main_.gradients());
        inner.input_gradients = wanted ? std::span(&other, 1) : std::span<const Operand>{};
        TRY(shortcut_.backward(inner));
        return wanted ? add_->run({other, call.input_gradients[0]}, {1.0}) : Status{};
    }

private:
    static std::uint64_t bytes_of(std::uint64_t elements) { return (elements * sizeof(float) + 63) / 64 * 64; }
    /// Where this plan's own part of the temporary memory begins.
    std::uint64_t rest() const {
        return (std::max(main_.temporary_bytes(), shortcut_.temporary_bytes()) + 63) / 64 * 64;
    }
    Operand part(const LayerForward& call, std::uint64_t offset, std::uint64_t elements) const {
        return {static_cast<const std::byte*>(call.temporary) + rest() + offset, elements, CW_F32};
    }
    LayerForward shortcut_call(const LayerForward& call) const {
        LayerForward inner = call;
        inner.parameters = call.parameters.subspan(main_.parameters());
        inner.scratch = static_cast<std::byte*>(call.scratch) + main_.scratch_bytes();
        return inner;
    }

    SequencePlan main_;
    SequencePlan shortcut_;
    bool identity_;
    std::uint64_t inputs_, outputs_;  // elements
    Plan* add_ = nullptr;
    Plan* relu_ = nullptr;
    Plan* relu_backward_ = nullptr;
};

std::shared_ptr<const Layer> layer_of(const std::string& text) {
    auto layer = parse_layer(text);
    ASSERT(layer.has_value());
    return *std::move(layer);
}

class Residual : public Layer {
public:
    Residual(std::int64_t filters, std::int64_t stride, std::int64_t groups, Exchange exchange)
        : filters_(filters),
          stride_(stride),
          groups_(groups),
          exchange_(exchange),
          main_(main_parts()),
          projection_(shortcut_parts()) {}

    std::string_view kind() const override { return "residual"; }
    std::string text() const override {
        return fmt::format("residual {}{}{}{}", filters_, stride_ == 1 ? "" : fmt::format(" stride {}", stride_),
                           groups_ == 0 ? "" : fmt::format(" groupnorm {}", groups_),
                           exchange_ == Exchange::local ? " local" : "");
    }

    Result<Boundary> infer(const Boundary& input) const override {
        TRY_ASSIGN(auto boundaries, main_.boundaries(input));
        return std::move(boundaries.back());
    }
    std::vector<ParameterSpec> parameters(const Boundary& input) const override {
        auto list = main_.parameters(input);
        for (ParameterSpec& parameter : shortcut(input).parameters(input)) {
            list.push_back(std::move(parameter));
        }
        return list;
    }
    Result<std::unique_ptr<LayerPlan>> prepare(PlanCache& plans, const Boundary& input, std::int64_t rows,
                                               Purpose purpose) const override {
        TRY_ASSIGN(const Boundary output, infer(input));
        TRY_ASSIGN(auto main, SequencePlan::make(plans, main_, input, rows, purpose));
        TRY_ASSIGN(auto beside, SequencePlan::make(plans, shortcut(input), input, rows, purpose));
        auto plan = std::make_unique<ResidualPlan>(std::move(main), std::move(beside), shortcut(input).empty(),
                                                   static_cast<std::uint64_t>(batch_elements(input, rows)),
                                                   static_cast<std::uint64_t>(batch_elements(output, rows)));
        TRY(plan->prepare(plans));
        return plan;
    }

private:
    std::string norm() const {
        return groups_ > 0 ? fmt::format("groupnorm {}", groups_)
               : exchange_ == Exchange::local ? "batchnorm local" : "batchnorm";
    }
    std::vector<Sequence::Part> main_parts() const {
        return {{"conv1", layer_of(fmt::format("conv {} 3x3 stride {} nobias", filters_, stride_))},
                {"norm1", layer_of(norm())},
                {"relu1", layer_of("relu")},
                {"conv2", layer_of(fmt::format("conv {} 3x3 nobias", filters_))},
                {"norm2", layer_of(norm())}};
    }
    std::vector<Sequence::Part> shortcut_parts() const {
        return {{"shortcut.conv", layer_of(fmt::format("conv {} 1x1 stride {} nobias", filters_, stride_))},
                {"shortcut.norm", layer_of(norm())}};
    }
    const Sequence& shortcut(const Boundary& input) const {
        static const Sequence identity({});
        return stride_ == 1 && input.front().shape.back() == filters_ ? identity : projection_;
    }

    std::int64_t filters_, stride_, groups_;  // groups 0: batchnorm
    Exchange exchange_;                       // of its batch norms
    Sequence main_;
    Sequence projection_;
};

Result<std::shared_ptr<const Layer>> parse_residual(std::span<const std::string> arguments) {
    const bool local = !arguments.empty() && arguments.back() == "local";
    arguments = arguments.first(arguments.size() - (local ? 1 : 0));
    if (arguments.empty() || arguments.size() % 2 == 0) {
        return fail(ErrorKind::invalid, "bad_layer", fmt::format("residual: write \"{}\"", residual_layer.form));
    }
    TRY_ASSIGN(const auto filters, parse_extent(residual_layer, arguments[0], 1, max_residual_filters));
    std::int64_t stride = 1, groups = 0;
    for (std::size_t i = 1; i < arguments.size(); i += 2) {
        if (arguments[i] == "stride") {
            TRY_ASSIGN(stride, parse_extent(residual_layer, arguments[i + 1], 1, 16));
        } else if (arguments[i] == "groupnorm") {
            TRY_ASSIGN(groups, parse_extent(residual_layer, arguments[i + 1], 1, filters));
        } else {
            return fail(ErrorKind::invalid, "bad_layer",
                        fmt::format("\"{}\" is not an option of residual: write \"{}\"", arguments[i].substr(0, 40),
                                    residual_layer.form));
        }
    }
    if (local && groups > 0) {
        return fail(ErrorKind::invalid, "bad_layer", "residual: local is about batch norms; leave it or groupnorm out");
    }
    return std::make_shared<const Residual>(filters, stride, groups, local ? Exchange::local : Exchange::shared);
}

}  // namespace

const LayerKind residual_layer{"residual", "residual FILTERS [stride N] [groupnorm GROUPS|local]", parse_residual};

}  // namespace causeway
