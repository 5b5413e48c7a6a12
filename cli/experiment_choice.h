// Which experiment a command means: a number, a name (the newest of that name), or nothing (the newest of all).
//
// Every command that takes an experiment resolves it here, so that all say the same of a name that was used twice and
// of one that nobody used. Main thread.
#pragma once

#include <cstdint>
#include <string>

#include "cli/operator_session.h"
#include "cli/output.h"

namespace causeway::cli {

/// The chosen experiment's line of experiment.list; a name that several have is said to be so in `output`.
///
/// `wanted` is a number or a name, empty: the newest. `state` is for the message only.
///
/// errors  not_found `no_experiments`, or `unknown_experiment` with what there is and the nearest name
[[nodiscard]] Result<Json> choose_experiment(OperatorSession& session, const std::string& wanted,
                                             const std::string& state, Output output);
/// Its number alone.
[[nodiscard]] Result<std::uint64_t> choose_experiment_id(OperatorSession& session, const std::string& wanted,
                                                         const std::string& state, Output output);

}  // namespace causeway::cli
