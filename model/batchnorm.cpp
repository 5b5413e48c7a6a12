// batchnorm: each channel is normalised over the batch in training, by running statistics otherwise.
//
// The running mean and variance are buffers: they travel with an update and are averaged like parameters, by the same
// weights. Where clients' data differ much that mean fits nobody; `groupnorm` has no such statistics.
// Source: Ioffe and Szegedy 2015; momentum and epsilon are PyTorch's.
#include <fmt/format.h>

#include "model/norm.h"

namespace causeway {
extern const LayerKind batchnorm_layer;
namespace {

class BatchNormPlan : public LayerPlan {
public:
    BatchNormPlan(PlanCache& plans, const ops::NormShape& shape) : plans_(plans), shape_(shape) {}

    Status prepare(Purpose purpose) {
        TRY_ASSIGN(inference_, plans_.get(ops::batch_norm_inference(shape_)));
        if (purpose == Purpose::training) {
            TRY_ASSIGN(forward_, plans_.get(ops::batch_norm(shape_)));
            TRY_ASSIGN(backward_, plans_.get(ops::batch_norm_backward(shape_)));
        }
        return {};
    }
    std::uint64_t scratch_bytes() const override { return 2 * channels() * sizeof(float); }

    /// Parameters: weight, bias, running mean, running variance.
    Status forward(const LayerForward& call) override {
        const auto& p = call.parameters;
        if (call.purpose == Purpose::inference) {
            return inference_->run({call.inputs[0], p[0], p[1], p[2], p[3], call.outputs[0]});
        }
        return forward_->run({call.inputs[0], p[0], p[1], p[2], p[3], call.outputs[0], mean(call), rstd(call)},
                             {batch_norm_momentum});
    }
    Status backward(const LayerBackward& call) override {
        Plan* plan = backward_;
        if (call.write == ops::Write::accumulate) {  // rare (microbatches): its plan is made at first use
            TRY_ASSIGN(plan, plans_.get(ops::batch_norm_backward(shape_, call.write)));
        }
        // As in group_norm.cpp: where nobody wants dx, it goes where dy was.
        const auto& dx = call.input_gradients.empty() ? call.output_gradients[0] : call.input_gradients[0];
        return plan->run({call.forward.inputs[0], call.forward.parameters[0], mean(call.forward), rstd(call.forward),
                          call.output_gradients[0], dx, call.parameter_gradients[0], call.parameter_gradients[1]});
    }

private:
    std::uint64_t channels() const { return static_cast<std::uint64_t>(shape_.channels); }
    Operand mean(const LayerForward& call) const { return {call.scratch, channels(), CW_F32}; }
    Operand rstd(const LayerForward& call) const {
        return {static_cast<const float*>(call.scratch) + channels(), channels(), CW_F32};
    }

    PlanCache& plans_;
    ops::NormShape shape_;
    Plan* forward_ = nullptr;
    Plan* inference_ = nullptr;
    Plan* backward_ = nullptr;
};

class BatchNorm : public Layer {
public:
    std::string_view kind() const override { return "batchnorm"; }
    std::string text() const override { return "batchnorm"; }

    bool backward_reads_output() const override { return false; }
    Result<Boundary> infer(const Boundary& input) const override {
        TRY(expect_one_float_tensor(kind(), input));
        if (input.front().shape.empty()) {
            return fail(ErrorKind::invalid, "bad_layer", "batchnorm takes channels, not single numbers");
        }
        return input;
    }
    std::vector<ParameterSpec> parameters(const Boundary& input) const override {
        const std::int64_t channels = input.front().shape.back();
        const InitRule zeros{InitRule::Kind::zeros, 0}, ones{InitRule::Kind::ones, 0};
        return {{"weight", {channels}, ArenaKind::trainable, ones},
                {"bias", {channels}, ArenaKind::trainable, zeros},
                {"running_mean", {channels}, ArenaKind::buffers, zeros},
                {"running_var", {channels}, ArenaKind::buffers, ones}};
    }
    Result<std::unique_ptr<LayerPlan>> prepare(PlanCache& plans, const Boundary& input, std::int64_t rows,
                                               Purpose purpose) const override {
        const std::int64_t channels = input.front().shape.back();
        auto plan = std::make_unique<BatchNormPlan>(plans, ops::NormShape{.batch = rows,
                                                                          .places = batch_elements(input, 1) / channels,
                                                                          .channels = channels,
                                                                          .groups = 1,
                                                                          .epsilon = norm_epsilon});
        TRY(plan->prepare(purpose));
        return plan;
    }
};

Result<std::shared_ptr<const Layer>> parse(std::span<const std::string> arguments) {
    TRY(expect_arguments(batchnorm_layer, arguments, 0));
    return std::make_shared<const BatchNorm>();
}

}  // namespace

const LayerKind batchnorm_layer{"batchnorm", "batchnorm", parse};

}  // namespace causeway
