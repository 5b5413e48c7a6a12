// What the store hands back at a start, and from which every experiment goes on by itself.
//
// Only what was persisted is here. Everything else (sessions, leases, sums) is made anew: the epoch has risen, so
// nothing said under an older process's leases can count, and members offer again what they still hold.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/effects.h"
#include "coordinator/round_history.h"

namespace causeway {

struct RecoveredExperiment {
    SaveExperiment saved;                  // as last saved: id, name, file, state, reason, submitted_by
    RoundHistory rounds;                   // committed, from round 0 or the parent's
    Json last_times{};                     // where the time of the last one went, for status
    std::vector<std::string> next_cohort;  // of the last commit
    /// Per node the latest round whose sum holds its update, and that update: answers a Hello's `held`.
    /// One is enough, for a client resolves what it holds before it works on another round.
    std::map<std::string, std::pair<std::uint32_t, Digest>> last_counted;
    /// Per node the last round that it was drawn for: whose turn it is next (coordinator/selection.h).
    std::map<std::string, std::uint32_t> last_drawn;
    /// Decisions of the open round, the one after the last commit, in their order.
    std::vector<SaveDecision> decisions;
    /// Rounds that were committed with these models and are done again (decision `redo`): they come to the same.
    std::map<std::uint32_t, Digest> redo{};

    /// The next committed round, in ascending order.
    void add(const StoredRound& round) {
        rounds.add(record_of(round));
        last_times = round.summary["time"];
    }
};

struct Recovered {
    std::uint64_t epoch = 1;                                          // already raised for this process
    std::vector<RecoveredExperiment> experiments;                     // ascending id, also those that are over
    std::map<std::string, std::vector<DatasetDeclaration>> declared;  // what each node declared last (SaveDeclaration)
};

}  // namespace causeway
