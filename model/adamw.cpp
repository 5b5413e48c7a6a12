// adamw: Adam with decoupled weight decay, as torch.optim.AdamW has it (amsgrad off). Loshchilov and Hutter 2019.
#include "model/adam_family.h"

namespace causeway {
extern const OptimizerKind adamw_optimizer;
namespace {

constexpr auto adamw_fields = adam_fields(0.01);

Status adamw_step(const OptimizerSpec& spec, PlanCache& plans, const OptimizerStep& s) {
    TRY_ASSIGN(Plan * plan, plans.get(ops::adamw()));
    return plan->run(std::array{s.parameters, s.gradient, s.moments[0], s.moments[1]},
                     std::array{s.rate(spec), spec["beta1"], spec["beta2"], spec["epsilon"], spec["weight_decay"],
                                static_cast<double>(s.step)});
}

}  // namespace

const OptimizerKind adamw_optimizer{"adamw", adamw_fields, two_moments, adamw_step};

}  // namespace causeway
