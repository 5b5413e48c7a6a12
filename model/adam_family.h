// What Adam, AdamW and NAdamW share: two moments, their decays, and the numbers of one step.
#pragma once

#include <array>

#include "model/optimizer.h"

namespace causeway {

// beta = 1 would divide by zero in the bias correction, so the betas stop just below it.
constexpr double below_one = 0x1.fffffffffffffp-1;

constexpr std::array<OptimizerField, 5> adam_fields(double weight_decay) {
    using Ends = OptimizerField::Ends;
    return {OptimizerField{"learning_rate", 0.001, 0.0, 1e6, Ends::closed, "step size"},
            OptimizerField{"beta1", 0.9, 0.0, below_one, Ends::closed, "decay of the mean of gradients"},
            OptimizerField{"beta2", 0.999, 0.0, below_one, Ends::closed, "decay of the mean of squared gradients"},
            OptimizerField{"epsilon", 1e-8, 0.0, 1.0, Ends::open, "added to the root of the second mean"},
            OptimizerField{"weight_decay", weight_decay, 0.0, 1e6, Ends::closed,
                           "pull of the parameters towards 0: added to the gradient (adam), or apart from it"}};
}

inline std::size_t two_moments(const OptimizerSpec&) {
    return 2;
}

}  // namespace causeway
