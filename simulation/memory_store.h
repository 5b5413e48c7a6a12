// A store that keeps exactly what was persisted: what a coordinator that crashes finds again, and the whole log of each
// experiment, for a replay. A commit clears what a restart need not read back; the log keeps it. Single thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/recovered.h"
#include "simulation/replay.h"

namespace causeway::simulation {

class MemoryStore {
public:
    /// All persists of one step, as one transaction.
    void apply(const std::vector<Persist>& persists);
    /// For the next process: the epoch rises.
    Recovered recover();
    /// Without its rounds.
    [[nodiscard]] const RecoveredExperiment* find(ExperimentId id) const;
    /// All committed rounds, ascending; with their members' times.
    [[nodiscard]] const std::vector<StoredRound>& rounds(ExperimentId id) const;
    /// Those from `from` on, `count` at most.
    [[nodiscard]] std::vector<StoredRound> rounds(ExperimentId id, std::uint32_t from, std::uint32_t count) const;
    /// Everything persisted of it so far; empty when it is unknown.
    [[nodiscard]] RunLog log(ExperimentId id) const;

private:
    void apply_one(const SaveExperiment& save);
    void apply_one(const SaveDecision& save);
    void apply_one(const SaveCommit& save);
    void apply_one(const SaveEvaluation& save);
    void apply_one(const SaveDeclaration& save);

    std::uint64_t epoch_ = 0;
    std::map<ExperimentId, RecoveredExperiment> experiments_;  // without their rounds
    std::map<ExperimentId, std::vector<StoredRound>> rounds_;
    std::map<ExperimentId, RunLog> logs_;
    std::map<std::string, std::vector<DatasetDeclaration>> declared_;
};

}  // namespace causeway::simulation
