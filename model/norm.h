// Norms: layernorm and groupnorm, whose statistics are an example's own, and batchnorm, whose are the batch's.
#pragma once

#include "model/layer.h"

namespace causeway {

constexpr double norm_epsilon = 1e-5;      // PyTorch's default
constexpr double batch_norm_momentum = 0.1;  // PyTorch's default: the share of the newest batch

/// What the plans of all norms share: statistics kept from the forward to the backward, and the backward itself.
class NormPlan : public LayerPlan {
public:
    using MakeBackward = cw_op (*)(const ops::NormShape& shape, ops::Write write);

    NormPlan(PlanCache& plans, const ops::NormShape& shape, std::int64_t statistics, MakeBackward make_backward)
        : plans_(plans),
          shape_(shape),
          statistics_(static_cast<std::uint64_t>(statistics)),
          make_backward_(make_backward) {}

    std::uint64_t scratch_bytes() const override { return 2 * statistics_ * sizeof(float); }
    Status backward(const LayerBackward& call) override {
        const LayerForward& seen = call.forward;
        TRY_ASSIGN(Plan * plan, plans_.get(make_backward_(shape_, call.write)));
        // The kernel needs room for dx even where nobody wants it: the gradient that came in is no longer needed.
        const auto& dx = call.input_gradients.empty() ? call.output_gradients[0] : call.input_gradients[0];
        return plan->run({seen.inputs[0], seen.parameters[0], mean(seen), rstd(seen), call.output_gradients[0], dx,
                          call.parameter_gradients[0], call.parameter_gradients[1]});
    }

protected:
    Status prepare_backward(Purpose purpose) {
        return purpose == Purpose::training
                   ? plans_.get(make_backward_(shape_, ops::Write::overwrite)).map([](Plan*) {})
                   : Status{};
    }
    Operand mean(const LayerForward& call) const { return {call.scratch, statistics_, CW_F32}; }
    Operand rstd(const LayerForward& call) const {
        return {static_cast<const float*>(call.scratch) + statistics_, statistics_, CW_F32};
    }

    PlanCache& plans_;
    ops::NormShape shape_;

private:
    std::uint64_t statistics_;
    MakeBackward make_backward_;
};

/// Over the last dimension of every place (groups 1, places apart), or over `groups` parts of the channels of a whole
/// example.
enum class NormSpan { place, example };
std::shared_ptr<const Layer> make_group_norm(std::string_view kind, NormSpan span, std::int64_t groups);

}  // namespace causeway
