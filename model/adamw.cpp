// adamw: Adam with decoupled weight decay, as torch.optim.AdamW has it (amsgrad off).
#include <array>

#include "model/optimizer.h"

namespace causeway {
extern const OptimizerKind adamw_optimizer;
namespace {

using Ends = OptimizerField::Ends;
// beta = 1 would divide by zero in the bias correction, so the betas stop just below it.
constexpr double below_one = 0x1.fffffffffffffp-1;
constexpr std::array fields = {
    OptimizerField{"learning_rate", 0.001, 0.0, 1e6, Ends::closed, "step size"},
    OptimizerField{"beta1", 0.9, 0.0, below_one, Ends::closed, "decay of the mean of gradients"},
    OptimizerField{"beta2", 0.999, 0.0, below_one, Ends::closed, "decay of the mean of squared gradients"},
    OptimizerField{"epsilon", 1e-8, 0.0, 1.0, Ends::open, "added to the root of the second mean"},
    OptimizerField{"weight_decay", 0.01, 0.0, 1e6, Ends::closed, "share of a parameter that a step of rate 1 removes"},
};

std::size_t moments(const OptimizerSpec&) {
    return 2;
}

Status step(const OptimizerSpec& spec, PlanCache& plans, const OptimizerStep& s) {
    TRY_ASSIGN(Plan * plan, plans.get(ops::adamw()));
    return plan->run(std::array{s.parameters, s.gradient, s.moments[0], s.moments[1]},
                     std::array{spec["learning_rate"], spec["beta1"], spec["beta2"], spec["epsilon"],
                                spec["weight_decay"], static_cast<double>(s.step)});
}

}  // namespace

const OptimizerKind adamw_optimizer{"adamw", fields, moments, step};

}  // namespace causeway
