// A store that keeps exactly what was persisted: what a coordinator that crashes finds again.
#pragma once

#include <map>
#include <string>

#include "coordinator/recovered.h"

namespace causeway::simulation {

class MemoryStore {
public:
    /// All persists of one step, as one transaction.
    void apply(const std::vector<Persist>& persists);
    /// For the next process: the epoch rises.
    Recovered recover();
    [[nodiscard]] const RecoveredExperiment* find(ExperimentId id) const;

private:
    void apply_one(const SaveExperiment& save);
    void apply_one(const SaveDecision& save);
    void apply_one(const SaveCommit& save);
    void apply_one(const SaveEvaluation& save);
    void apply_one(const SaveDeclaration& save);

    std::uint64_t epoch_ = 0;
    std::map<ExperimentId, RecoveredExperiment> experiments_;
    std::map<std::string, std::vector<DatasetDeclaration>> declared_;
};

}  // namespace causeway::simulation
