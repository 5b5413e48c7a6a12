// The few sentences that an Experiment can say about itself. Pure, any thread.
#include "configs/experiment.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace causeway {

std::uint32_t CountOrShare::of(std::uint32_t members) const {
    if (kind == Kind::count) {
        return std::max(count, 1U);
    }
    // 70 % of 10 is 7, although 0.7 * 10 may lie a hair above it in binary.
    const double exact = share * members;
    return std::max(static_cast<std::uint32_t>(std::ceil(exact - 1e-9 * members)), 1U);
}

std::string Place::text() const {
    switch (origin) {
        case Origin::defaulted:
            return "default";
        case Origin::preset:
            return "preset " + name;
        case Origin::command_line:
            return "--set " + name;
        case Origin::file:
            break;
    }
    return fmt::format("{}:{}:{}", name, line, column);
}

std::string OptimizerOptions::text() const {
    auto words = fmt::format("{} learning_rate={}", kind, learning_rate);
    if (kind == "sgd") {
        words += fmt::format(" momentum={} nesterov={}", momentum, nesterov ? 1 : 0);
    } else {
        words += fmt::format(" beta1={} beta2={} epsilon={}", beta1, beta2, epsilon);
    }
    return words + fmt::format(" weight_decay={}", weight_decay);
}

bool Experiment::operator==(const Experiment& other) const {
    return experiment == other.experiment && data == other.data && model == other.model && train == other.train &&
           regime == other.regime && mesh == other.mesh && flow == other.flow && sync == other.sync &&
           codec == other.codec && evaluation == other.evaluation;
}

}  // namespace causeway
