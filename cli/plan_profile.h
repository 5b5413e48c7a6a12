// Whom a plan is for: clients with links and speeds, from a profile file, a running coordinator, or options.
//
// A profile is TOML: `[host]` with speed, uplink and memory, and a `[[client]]` with name, uplink, downlink, delay,
// speed and examples for each. Every mistake is reported at its place, all at once. Main thread; reads files and, with
// --state, asks the coordinator.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plan_commands.h"
#include "configs/experiment.h"
#include "split/planner.h"

namespace causeway::cli {

struct PlanCast {
    std::vector<PlanClient> clients;
    PlanHost host;
    std::string source;  // in words: where links, speeds and examples come from
    bool from_nodes = false;  // of a running coordinator; then what of each node was never measured, by name:
    std::map<std::string, std::vector<std::string>> assumed{};
    bool host_measured = false;
};

/// errors  invalid `bad_profile`: every mistake in one message, one line each
Result<PlanCast> parse_profile(std::string_view text, const std::string& file_name);

/// errors  those of the profile, of the dataset's reader, of the coordinator
Result<PlanCast> plan_cast(const PlanOptions& options, const Experiment& experiment);

/// A copy of an experiment file's text with another choice of [regime], comments and all else as they were. `cut` and
/// `groups` are left out where they are empty.
///
/// errors  invalid `cannot_apply`: the result would not read as meant
Result<std::string> with_regime(const std::string& text, const std::string& file_name, const std::string& preset,
                                const std::string& cut, std::uint32_t groups);

}  // namespace causeway::cli
