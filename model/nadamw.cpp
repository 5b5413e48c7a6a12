// nadamw: Adam with Nesterov's look-ahead and decoupled weight decay, as torch.optim.NAdam has it with
// decoupled_weight_decay=True and momentum_decay=0.004. Dozat 2016.
#include <cmath>

#include "model/adam_family.h"

namespace causeway {
extern const OptimizerKind nadamw_optimizer;
namespace {

constexpr auto nadamw_fields = adam_fields(0.01);
constexpr double momentum_decay = 0.004;

double momentum_at(double beta1, std::uint64_t t) {
    return beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * momentum_decay));
}

/// The product of the momenta of steps 1 to t. It is a function of t, so nothing needs to be kept from step to step;
/// below 1e-20 it no longer changes 1 minus it, after a few hundred factors at most for beta1 <= 0.95.
double product_to(double beta1, std::uint64_t t) {
    double product = 1;
    for (std::uint64_t i = 1; i <= t && product > 1e-20; ++i) {
        product *= momentum_at(beta1, i);
    }
    return product;
}

Status nadamw_step(const OptimizerSpec& spec, PlanCache& plans, const OptimizerStep& s) {
    TRY_ASSIGN(Plan * plan, plans.get(ops::adam()));
    const double rate = s.rate(spec);
    const double beta1 = spec["beta1"];
    const double product = product_to(beta1, s.step);
    const double next = momentum_at(beta1, s.step + 1);
    const double own = rate * (1 - momentum_at(beta1, s.step)) / (1 - product);
    const double moment = rate * next / (1 - product * next);
    const double correction = 1 / std::sqrt(1 - std::pow(spec["beta2"], static_cast<double>(s.step)));
    return plan->run(std::array{s.parameters, s.gradient, s.moments[0], s.moments[1]},
                     std::array{1 - rate * spec["weight_decay"], 0.0, beta1, spec["beta2"], own, moment, correction,
                                spec["epsilon"]});
}

}  // namespace

const OptimizerKind nadamw_optimizer{"nadamw", nadamw_fields, two_moments, nadamw_step};

}  // namespace causeway
