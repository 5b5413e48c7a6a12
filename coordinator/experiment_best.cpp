// The best model so far, and the end for want of a better one.
//
// Both are functions of the evaluations that the store has, and of nothing else. With `patience` the round after an
// evaluated one is not drawn before that evaluation is in, so what is known when the decision falls does not depend on
// how long an evaluation takes: every run, restart and simulation decides after the same round. The evaluation, the
// decision and the end are one transaction. An evaluation that fails (no held-out set) decides nothing.
// Part of ExperimentMachine (experiment_machine.h). Thread: loop. Pure.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "coordinator/decisions.h"
#include "coordinator/experiment_machine.h"

namespace causeway {
namespace {

/// Greater is better, then the other measure; the store orders snapshots that it keeps in the same way. A loss that is
/// not a number is the worst there is: NaN compares with nothing and would stay the best for ever.
std::pair<double, double> worth(const ModelEvaluated& evaluation, bool by_loss) {
    const double loss = std::isnan(evaluation.loss) ? std::numeric_limits<double>::infinity() : evaluation.loss;
    return by_loss ? std::pair(-loss, evaluation.accuracy) : std::pair(evaluation.accuracy, -loss);
}

}  // namespace

const RoundRecord* ExperimentMachine::best() const {
    const bool by_loss = config_.evaluation.metric == "loss";
    const RoundRecord* best = identity_.best_before ? &*identity_.best_before : nullptr;
    for (const auto& record : records_) {
        if (record.evaluation &&
            (best == nullptr || worth(*record.evaluation, by_loss) > worth(*best->evaluation, by_loss))) {
            best = &record;
        }
    }
    return best;
}

/// Whether the next round depends on this one's evaluation.
bool ExperimentMachine::judged(std::uint32_t round) const {
    return config_.evaluation.patience > 0 && evaluation_due(round);
}

bool ExperimentMachine::out_of_patience() const {
    const auto* found = best();
    return config_.evaluation.patience > 0 && found != nullptr && records_.back().evaluation &&
           committed_rounds() - found->round >= config_.evaluation.patience;
}

void ExperimentMachine::stop_early(Turn turn) {
    const auto& found = *best();
    const auto& metric = config_.evaluation.metric;
    const double value = metric == "loss" ? found.evaluation->loss : found.evaluation->accuracy;
    turn.effects.persist.push_back(
        SaveDecision{id(), committed_rounds() + 1, decisions::early_stop,
                     decisions::early_stop_detail(metric, found.round, value, config_.evaluation.patience)});
    end(turn, "succeeded",
        fmt::format("early_stop: {} rounds without a better {} than {:.4f} of round {}",
                    committed_rounds() - found.round, metric, value, found.round));
}

}  // namespace causeway
