// An Experiment as text: the canonical TOML that the coordinator stores and the listing that `experiment show` prints.
//
// Canonical: every key that applies, in the table's order, presets expanded, one spelling per value. It re-reads to an
// equal Experiment, so storing it pins the run against later changes of defaults and presets. Pure, any thread.
#pragma once

#include <string>

#include "configs/experiment.h"

namespace causeway {

[[nodiscard]] std::string canonical_toml(const Experiment& experiment);
/// The same with the place each value came from as a comment behind it.
[[nodiscard]] std::string show_toml(const Experiment& experiment);

}  // namespace causeway
