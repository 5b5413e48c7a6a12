// Runs an experiment again from what its store recorded, without time, network or failures: same inputs and same
// decisions must give the same bits.
//
// What time or arrival decided is in the log: each round's cohort, who was dropped or refused, whose update counted,
// whether the run ended early. Everything else follows from the file, the data and the nodes' names, so only those who
// counted train again. The work is any CoordinatorWork and ClientWork: real ones (real_work.h) for `experiment replay`
// and the fault seeds, scripted ones in tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulation/work.h"

namespace causeway::simulation {

/// An experiment as the store has it.
struct RunLog {
    SaveExperiment saved;
    std::vector<SaveCommit> commits;  // ascending from round 0 or its parent's; more may come while it runs
    std::vector<SaveDecision> decisions;  // of all rounds, in their order
    /// Of a resumed experiment those before it, the nearest first. Replay them with the same work before.
    std::vector<ExperimentId> ancestors{};
};

/// A log that no coordinator writes: a participant outside its cohort, dropped or refused; a commit below the quorum;
/// rounds with gaps; rounds after the last or after an early stop.
///
/// errors   invalid `bad_log`: which rule, in which round; invalid: the experiment file
Status check_log(const RunLog& log);

struct ReplayedRound {
    std::uint32_t round = 0;
    Digest model;                      // as computed here
    Digest recorded;                   // as the log has it
    std::vector<std::string> differs;  // participants whose update has other bits than recorded, sorted

    [[nodiscard]] bool same() const { return model == recorded && differs.empty(); }
};

/// The work of a node, alive until replay() is back. errors: not_found: its data are not here
using FindClient = std::function<Result<ClientWork*>(const std::string& node)>;
/// Told after each round, the first model as round 0; false ends the replay there.
using OnReplayed = std::function<bool(const ReplayedRound&)>;

/// Goes on after a difference, with its own bits: which rounds differ is in the answer.
///
/// errors   as check_log; those of `client`; what a job failed with, naming round and node
/// cost     every participant's training again, one after the other; memory of the work
Result<std::vector<ReplayedRound>> replay(const RunLog& log, CoordinatorWork& work, const FindClient& client,
                                          const OnReplayed& on_round = {});

}  // namespace causeway::simulation
