// What several values of a split regime must be together: mesh and flow, cuts and the model, groups and members.
//
// One of the parts of find_inconsistencies (checks.h), apart because only these ask how a chain is cut. Every mistake
// is reported where it stands; none of them repeats what a field's own bounds have refused. Pure, any thread.
#pragma once

#include <vector>

#include "configs/checks.h"

namespace causeway {

/// Whether clients hold a part of the model only.
[[nodiscard]] bool is_split(const Experiment& experiment);
/// How many relays a round has at least clients for; 0: one per client.
[[nodiscard]] std::uint32_t groups_of(const Experiment& experiment);

/// The default of `groups` follows `group_lists`, that of `min_clients` the groups.
void follow_groups(Experiment& experiment);

void check_mesh(const Experiment& experiment, std::vector<Inconsistency>& found);
void check_cut(const Experiment& experiment, std::vector<Inconsistency>& found);
void check_groups(const Experiment& experiment, std::vector<Inconsistency>& found);
void check_split_codec(const Experiment& experiment, std::vector<Inconsistency>& found);
void check_split_evaluation(const Experiment& experiment, std::vector<Inconsistency>& found);
void check_split_training(const Experiment& experiment, std::vector<Inconsistency>& found);

}  // namespace causeway
