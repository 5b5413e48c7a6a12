// sgd: stochastic gradient descent with momentum, as torch.optim.SGD has it.
#include <array>

#include "model/optimizer.h"

namespace causeway {
extern const OptimizerKind sgd_optimizer;
namespace {

using Ends = OptimizerField::Ends;
constexpr std::array sgd_fields = {
    OptimizerField{"learning_rate", 0.01, 0.0, 1e6, Ends::closed, "step size"},
    OptimizerField{"momentum", 0.0, 0.0, 1.0, Ends::closed, "share of the last step's direction that is kept"},
    OptimizerField{"weight_decay", 0.0, 0.0, 1e6, Ends::closed, "times the parameters, added to the gradient"},
    OptimizerField{"nesterov", 0.0, 0.0, 1.0, Ends::closed, "1: look ahead along the momentum"},
};

bool has_momentum(const OptimizerSpec& spec) {
    return spec["momentum"] != 0;
}

std::size_t moments(const OptimizerSpec& spec) {
    return has_momentum(spec) ? 1 : 0;
}

Status sgd_step(const OptimizerSpec& spec, PlanCache& plans, const OptimizerStep& s) {
    const std::array scalars = {s.rate(spec), spec["momentum"], 0.0, spec["weight_decay"],
                                static_cast<double>(s.step)};
    if (!has_momentum(spec)) {
        TRY_ASSIGN(Plan * plan, plans.get(ops::sgd(ops::Momentum::absent)));
        return plan->run(std::array{s.parameters, s.gradient}, scalars);
    }
    const auto kind = spec["nesterov"] != 0 ? ops::Momentum::nesterov : ops::Momentum::plain;
    TRY_ASSIGN(Plan * plan, plans.get(ops::sgd(kind)));
    return plan->run(std::array{s.parameters, s.gradient, s.moments[0]}, scalars);
}

}  // namespace

const OptimizerKind sgd_optimizer{"sgd", sgd_fields, moments, sgd_step};

}  // namespace causeway
