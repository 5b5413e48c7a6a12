// The one implementation behind layernorm and groupnorm: the kernel differs only in what it calls a batch.
#include <fmt/format.h>

#include "model/norm.h"

namespace causeway {
namespace {

class GroupNormPlan : public NormPlan {
public:
    GroupNormPlan(PlanCache& plans, const ops::NormShape& shape)
        : NormPlan(plans, shape, shape.batch * shape.groups, ops::group_norm_backward) {}

    Status prepare(Purpose purpose) {
        TRY_ASSIGN(forward_, plans_.get(ops::group_norm(shape_)));
        return prepare_backward(purpose);
    }
    Status forward(const LayerForward& call) override {
        return forward_->run(
            {call.inputs[0], call.parameters[0], call.parameters[1], call.outputs[0], mean(call), rstd(call)});
    }

private:
    Plan* forward_ = nullptr;
};

class GroupNorm : public Layer {
public:
    GroupNorm(std::string_view kind, NormSpan span, std::int64_t groups) : kind_(kind), span_(span), groups_(groups) {}

    std::string_view kind() const override { return kind_; }
    std::string text() const override {
        return span_ == NormSpan::place ? std::string(kind_) : fmt::format("{} {}", kind_, groups_);
    }

    bool backward_reads_output() const override { return false; }
    Result<Boundary> infer(const Boundary& input) const override {
        TRY(expect_one_float_tensor(kind_, input));
        const Shape& shape = input.front().shape;
        if (shape.empty() || shape.back() % groups_ != 0) {
            return fail(ErrorKind::invalid, "bad_layer",
                        fmt::format("{}: {} groups do not divide the channels of {}", kind_, groups_,
                                    to_string(shape)));
        }
        return input;
    }
    std::vector<ParameterSpec> parameters(const Boundary& input) const override {
        const std::int64_t channels = input.front().shape.back();
        return {{"weight", {channels}, ArenaKind::trainable, {InitRule::Kind::ones, 0}},
                {"bias", {channels}, ArenaKind::trainable, {InitRule::Kind::zeros, 0}}};
    }
    Result<std::unique_ptr<LayerPlan>> prepare(PlanCache& plans, const Boundary& input, std::int64_t rows,
                                               Purpose purpose) const override {
        const std::int64_t channels = input.front().shape.back();
        const std::int64_t places = batch_elements(input, 1) / channels;
        const bool apart = span_ == NormSpan::place;
        auto plan = std::make_unique<GroupNormPlan>(plans, ops::NormShape{.batch = apart ? rows * places : rows,
                                                                          .places = apart ? 1 : places,
                                                                          .channels = channels,
                                                                          .groups = groups_,
                                                                          .epsilon = norm_epsilon});
        TRY(plan->prepare(purpose));
        return plan;
    }

private:
    std::string_view kind_;  // of a registry entry: lives as long as the process
    NormSpan span_;
    std::int64_t groups_;
};

}  // namespace

std::shared_ptr<const Layer> make_group_norm(std::string_view kind, NormSpan span, std::int64_t groups) {
    return std::make_shared<const GroupNorm>(kind, span, groups);
}

}  // namespace causeway
