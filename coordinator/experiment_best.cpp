// The end for want of a better model than the best so far (round_history.h).
//
// Both are functions of the evaluations that the store has, and of nothing else. With `patience` the round after an
// evaluated one is not drawn before that evaluation is in, so what is known when the decision falls does not depend on
// how long an evaluation takes: every run, restart and simulation decides after the same round. The evaluation, the
// decision and the end are one transaction. An evaluation that fails (no held-out set) decides nothing.
// Part of ExperimentMachine (experiment_machine.h). Thread: loop. Pure.
#include <fmt/format.h>

#include "coordinator/decisions.h"
#include "coordinator/experiment_machine.h"

namespace causeway {

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
    const double value = metric_of(*found.evaluation);
    turn.effects.persist.push_back(
        SaveDecision{id(), committed_rounds() + 1, decisions::early_stop,
                     decisions::early_stop_detail(metric, found.round, value, config_.evaluation.patience)});
    end(turn, "succeeded",
        fmt::format("early_stop: {} rounds without a better {} than {:.4f} of round {}",
                    committed_rounds() - found.round, metric, value, found.round));
}

}  // namespace causeway
