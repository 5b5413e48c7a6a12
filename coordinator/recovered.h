// What the store hands back at a start, and from which every experiment goes on by itself.
//
// Only what was persisted is here. Everything else (sessions, leases, sums) is made anew: the epoch has risen, so
// nothing said under an older process's leases can count, and members offer again what they still hold.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/effects.h"

namespace causeway {

/// One SaveCommit without its participants (they are in `last_counted`) and their times, and its evaluation if it came.
struct RecoveredRound {
    std::uint32_t round = 0;
    Digest model;
    std::uint64_t model_bytes = 0;
    Json summary;
    std::optional<SaveEvaluation> evaluation;
};

struct RecoveredExperiment {
    SaveExperiment saved;                  // as last saved: id, name, file, state, reason, submitted_by
    std::vector<RecoveredRound> rounds;    // committed, ascending without gaps from round 0, or the parent's
    std::vector<std::string> next_cohort;  // of the last commit
    /// Per node the latest round whose sum holds its update, and that update: answers a Hello's `held`.
    /// One is enough, for a client resolves what it holds before it works on another round.
    std::map<std::string, std::pair<std::uint32_t, Digest>> last_counted;
    /// Per node the last round that it was drawn for: whose turn it is next (coordinator/selection.h).
    std::map<std::string, std::uint32_t> last_drawn;
    /// Decisions of the open round, the one after the last commit, in their order.
    std::vector<SaveDecision> decisions;
};

struct Recovered {
    std::uint64_t epoch = 1;                                          // already raised for this process
    std::vector<RecoveredExperiment> experiments;                     // ascending id, also those that are over
    std::map<std::string, std::vector<DatasetDeclaration>> declared;  // what each node declared last (SaveDeclaration)
};

}  // namespace causeway
