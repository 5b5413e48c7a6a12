// adam: as torch.optim.Adam has it (amsgrad off); the weight decay is added to the gradient. Kingma and Ba 2015.
#include <cmath>

#include "model/adam_family.h"

namespace causeway {
extern const OptimizerKind adam_optimizer;
namespace {

constexpr auto plain_adam_fields = adam_fields(0.0);

Status adam_step(const OptimizerSpec& spec, PlanCache& plans, const OptimizerStep& s) {
    TRY_ASSIGN(Plan * plan, plans.get(ops::adam()));
    const auto t = static_cast<double>(s.step);
    const double moment = s.rate(spec) / (1 - std::pow(spec["beta1"], t));
    const double correction = 1 / std::sqrt(1 - std::pow(spec["beta2"], t));
    return plan->run(std::array{s.parameters, s.gradient, s.moments[0], s.moments[1]},
                     std::array{1.0, spec["weight_decay"], spec["beta1"], spec["beta2"], 0.0, moment, correction,
                                spec["epsilon"]});
}

}  // namespace

const OptimizerKind adam_optimizer{"adam", plain_adam_fields, two_moments, adam_step};

}  // namespace causeway
