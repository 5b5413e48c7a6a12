// `data.normalise = "federated"`: each value minus its column's mean, by its deviation, over all nodes' training parts.
//
// Before round 1 the clients send the sums of their columns instead of updates; what follows from them is written into
// the experiment's stored text ("federated MEANS DEVIATIONS"), as a model's name is pinned to its digest. From there on
// it is one more step of the data options that every assignment, evaluation, restart and replay reads. Pure.
#pragma once

#include <string>
#include <string_view>

#include "configs/experiment.h"

namespace causeway {

inline constexpr std::string_view normalise_federated = "federated";
/// Stands where other assignments have their program: its node sends sums (aggregation/column_sums.h), and is given no
/// model. The round's number is 0.
inline constexpr std::string_view statistics_program = "statistics";

/// The numbers are still to be found.
[[nodiscard]] inline bool needs_statistics(const Experiment& experiment) {
    return experiment.data.normalise == normalise_federated;
}

/// "MEANS DEVIATIONS", as the experiment's normalisation; empty: none, or not found yet.
[[nodiscard]] inline std::string found_statistics(const Experiment& experiment) {
    const auto& text = experiment.data.normalise;
    const bool found = text.size() > normalise_federated.size() && text.starts_with(normalise_federated);
    return found ? text.substr(normalise_federated.size() + 1) : "";
}

/// From here on found_statistics(experiment) == numbers.
inline void set_statistics(Experiment& experiment, const std::string& numbers) {
    experiment.data.normalise = std::string(normalise_federated) + " " + numbers;
}

}  // namespace causeway
