// See snapshot_check.h.
#include "coordinator/snapshot_check.h"

#include "configs/reader.h"

namespace causeway {
namespace {

bool ended(const std::string& state) {
    return state == "succeeded" || state == "failed" || state == "cancelled";
}

/// Nothing at the members moves on with a commit but the model.
bool members_keep_nothing(const SaveExperiment& saved) {
    const auto config = read_experiment_or_fail(saved.file, saved.name);
    return config && config->train.optimizer_state == "reset" && config->model.batch_norm != "local";
}

}  // namespace

std::vector<Rewind> rewinds(const std::vector<RecoveredExperiment>& experiments,
                            const std::function<bool(const Digest&)>& whole) {
    std::vector<Rewind> found;
    for (const auto& experiment : experiments) {
        const auto& rounds = experiment.rounds;
        if (ended(experiment.saved.state) || rounds.empty() || rounds.front().round == rounds.back().round ||
            whole(rounds.back().model) || !members_keep_nothing(experiment.saved)) {
            continue;
        }
        const auto last = rounds.back().round;
        const auto first = rounds.front().round;
        for (auto round = last; round-- > first;) {
            const auto* record = rounds.find(round);
            // The first model needs no file: it is made from the seed.
            const bool made_again = round == first && experiment.saved.parent == 0;
            if (record != nullptr && (made_again || whole(record->model))) {
                found.push_back({experiment.saved.experiment, last, round, rounds.back().model});
                break;
            }
        }
    }
    return found;
}

}  // namespace causeway
