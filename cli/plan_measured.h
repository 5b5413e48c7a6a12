// What a running coordinator has measured of its nodes, as a plan's links and speeds: over what the options assume.
//
// A line is used as it was measured. A speed is what a node says that its last piece of work took, beside what this
// machine takes for the same layers, which a short run measures here. What was never measured keeps the assumption, and
// is named. Main thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/plan_profile.h"
#include "common/json.h"

namespace causeway::cli {

/// Seconds of this machine for one example of a work: layers "[0, 3)" (empty: all) of an architecture.
using ExampleSeconds =
    std::function<Result<double>(const Json& experiment, const std::string& layers)>;

/// `measured` is the answer to `node.measurements`. Sets the clients' links and speeds where they are known, and of the
/// hosts the slowest speed and line; `cast.assumed` says what was not.
///
/// errors  those of `here`
Status use_measurements(const Json& measured, const std::vector<std::string>& hosts, const ExampleSeconds& here,
                        PlanCast& cast);

/// By a run of a fifth of a second for each experiment that a work is of.
ExampleSeconds seconds_on_this_machine();

}  // namespace causeway::cli
