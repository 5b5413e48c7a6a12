// What commands about experiments share besides the choice of one. Main thread only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/operator_session.h"
#include "cli/output.h"

namespace causeway::cli {

/// Follows an experiment to its end; the exit code is the experiment's. `state` is for the words at the end.
Result<int> follow_experiment(OperatorSession& session, std::uint64_t id, const std::string& state, Output output);

}  // namespace causeway::cli
