// An experiment's whole history as the coordinator's store has it (`experiment.log`), put together from its pages.
//
// Replay, explain and compare all begin with it: the log as simulation/replay.h reads it, and the figures beside it.
// A page is bounded and a history is not: it is kept whole, some kilobytes a round. Main thread.
#pragma once

#include <map>
#include <vector>

#include "cli/operator_session.h"
#include "simulation/replay.h"

namespace causeway::cli {

struct RunHistory {
    simulation::RunLog log;
    std::map<std::uint32_t, SaveEvaluation> evaluations;  // by round
};

/// errors   corrupt `bad_log`: pages that do not fit together; those of the session
Result<RunHistory> fetch_history(OperatorSession& session, ExperimentId id);

/// The experiment and those that it goes on from, the first of them first. Each ends with the round that the next one
/// begins with, and knows its ancestors.
Result<std::vector<RunHistory>> fetch_lineage(OperatorSession& session, ExperimentId id);

/// Its own commits: that of round 0, or of its parent's round, is none.
[[nodiscard]] std::vector<SaveCommit> own_rounds(const RunHistory& history);

}  // namespace causeway::cli
