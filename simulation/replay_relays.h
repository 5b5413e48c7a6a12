// A round of relays from its log: every hand-over's turn again, in the log's order.
#pragma once

#include "simulation/replay.h"

namespace causeway::simulation {

/// What the groups of a round came to, and whose segments differ from those recorded.
struct ReplayedRelays {
    std::vector<GroupResult> groups;
    std::vector<std::string> differs;
};

/// Trains the turns of `round` again; their segments are then in `work`. `assign` is as for every member of the round,
/// `start` the digests of both start segments.
///
/// errors   invalid `bad_log`: a hand-over of no group; those of `client`, naming round and node
Result<ReplayedRelays> replay_relays(const RunLog& log, CoordinatorWork& work, const FindClient& client,
                                     const Assign& assign, const RoundOpened& opened);

}  // namespace causeway::simulation
