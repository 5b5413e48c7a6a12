// batchnorm: each channel is normalised over the batch in training, by running statistics otherwise.
//
// The running mean and variance are buffers: they travel with an update and are averaged like parameters, by the same
// weights. Where clients' data differ much that mean fits nobody: `groupnorm` has no such statistics, and of `batchnorm
// local` nothing leaves its node (model/batch_norm_rule.h).
// Source: Ioffe and Szegedy 2015; momentum and epsilon are PyTorch's. Li et al. 2021, FedBN.
#include <fmt/format.h>

#include "model/norm.h"

namespace causeway {
extern const LayerKind batchnorm_layer;
namespace {

class BatchNormPlan : public NormPlan {
public:
    BatchNormPlan(PlanCache& plans, const ops::NormShape& shape)
        : NormPlan(plans, shape, shape.channels, ops::batch_norm_backward) {}

    Status prepare(Purpose purpose) {
        TRY_ASSIGN(inference_, plans_.get(ops::batch_norm_inference(shape_)));
        if (purpose == Purpose::training) {
            TRY_ASSIGN(forward_, plans_.get(ops::batch_norm(shape_)));
        }
        return prepare_backward(purpose);
    }

    /// Parameters: weight, bias, running mean, running variance.
    Status forward(const LayerForward& call) override {
        const auto& p = call.parameters;
        if (call.purpose == Purpose::inference) {
            return inference_->run({call.inputs[0], p[0], p[1], p[2], p[3], call.outputs[0]});
        }
        return forward_->run({call.inputs[0], p[0], p[1], p[2], p[3], call.outputs[0], mean(call), rstd(call)},
                             {call.pass == Pass::first ? batch_norm_momentum : 0.0});  // 0: observed already
    }

private:
    Plan* forward_ = nullptr;
    Plan* inference_ = nullptr;
};

class BatchNorm : public Layer {
public:
    explicit BatchNorm(Exchange exchange) : exchange_(exchange) {}

    std::string_view kind() const override { return "batchnorm"; }
    std::string text() const override { return exchange_ == Exchange::local ? "batchnorm local" : "batchnorm"; }

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
        return {{"weight", {channels}, ArenaKind::trainable, ones, exchange_},
                {"bias", {channels}, ArenaKind::trainable, zeros, exchange_},
                {"running_mean", {channels}, ArenaKind::buffers, zeros, exchange_},
                {"running_var", {channels}, ArenaKind::buffers, ones, exchange_}};
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

private:
    Exchange exchange_;
};

Result<std::shared_ptr<const Layer>> parse_batchnorm(std::span<const std::string> arguments) {
    if (arguments.size() == 1 && arguments[0] == "local") {
        return std::make_shared<const BatchNorm>(Exchange::local);
    }
    TRY(expect_arguments(batchnorm_layer, arguments, 0));
    return std::make_shared<const BatchNorm>(Exchange::shared);
}

}  // namespace

const LayerKind batchnorm_layer{"batchnorm", "batchnorm [local]", parse_batchnorm};

}  // namespace causeway
