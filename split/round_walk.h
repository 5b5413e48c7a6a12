// A round of relays walked batch by batch: who computes, sends or waits when. What the cost model sums up, one by one.
//
// Clients of a group take turns; groups run side by side and meet at the host, which serves one step at a time in the
// order of arrival. A short last batch is short. With an overlap a client's forwards, its line up, the host, its line
// down and its backwards are each busy with a batch of their own. The model's claim is that its sum comes near this
// walk (tests/split, `causeway bench plan`); the walk is what to trust where they differ. Pure, any thread.
#pragma once

#include <span>
#include <vector>

#include "split/cost_model.h"

namespace causeway {

/// Seconds of a round with its aggregation; `groups` as for gsfl_round.
///
/// cost  O(batches of all clients x groups)
double walk_round(std::span<const std::vector<ClientProfile>> groups, const SplitCosts& costs);
/// The same of clients that are all together with one server segment: batch-major, in the order of `clients`.
///
/// cost  O(batches of all clients)
double walk_together(std::span<const ClientProfile> clients, const SplitCosts& costs);

}  // namespace causeway
