// See memory_store.h.
#include "simulation/memory_store.h"

namespace causeway::simulation {

void MemoryStore::apply(const std::vector<Persist>& persists) {
    for (const auto& persist : persists) {
        std::visit([&](const auto& save) { apply_one(save); }, persist);
    }
}

void MemoryStore::apply_one(const SaveExperiment& save) {
    experiments_[save.experiment].saved = save;
    logs_[save.experiment].saved = save;
}

void MemoryStore::apply_one(const SaveDecision& save) {
    auto& experiment = experiments_.at(save.experiment);
    experiment.decisions.push_back(save);
    for (const auto& name : save.detail["members"].items()) {
        experiment.last_drawn[name.text()] = save.round;
    }
    logs_[save.experiment].decisions.push_back(save);
}

void MemoryStore::apply_one(const SaveCommit& save) {
    auto& experiment = experiments_.at(save.experiment);
    rounds_[save.experiment].push_back({save.round, save.model, save.model_bytes, save.summary, std::nullopt});
    experiment.next_cohort = save.next_cohort;
    experiment.decisions.clear();
    logs_[save.experiment].commits.push_back(save);
    for (const auto& node : save.next_cohort) {
        experiment.last_drawn[node] = save.round + 1;
    }
    for (const auto& [node, update] : save.participants) {
        experiment.last_counted[node] = {save.round, update};
    }
}

void MemoryStore::apply_one(const SaveEvaluation& save) {
    auto& rounds = rounds_.at(save.experiment);
    rounds.at(save.round - rounds.front().round).evaluation = save;
}

void MemoryStore::apply_one(const SaveDeclaration& save) {
    declared_[save.node] = save.datasets;
}

Recovered MemoryStore::recover() {
    Recovered recovered{++epoch_, {}, declared_};
    for (const auto& [id, experiment] : experiments_) {
        auto& added = recovered.experiments.emplace_back(experiment);
        for (const auto& round : rounds(id)) {
            added.add(round);
        }
    }
    return recovered;
}

const std::vector<StoredRound>& MemoryStore::rounds(ExperimentId id) const {
    static const std::vector<StoredRound> none;
    const auto found = rounds_.find(id);
    return found == rounds_.end() ? none : found->second;
}

std::vector<StoredRound> MemoryStore::rounds(ExperimentId id, std::uint32_t from, std::uint32_t count) const {
    std::vector<StoredRound> page;
    for (const auto& round : rounds(id)) {
        if (round.round >= from && page.size() < count) {
            page.push_back(round);
        }
    }
    return page;
}

RunLog MemoryStore::log(ExperimentId id) const {
    const auto found = logs_.find(id);
    return found == logs_.end() ? RunLog{} : found->second;
}

const RecoveredExperiment* MemoryStore::find(ExperimentId id) const {
    const auto found = experiments_.find(id);
    return found == experiments_.end() ? nullptr : &found->second;
}

}  // namespace causeway::simulation
