// The evaluation of a committed round: here, on the clients, or both; asked for, collected, and made one.
//
// It begins with the commit's own step and ends in a step of its own: the evaluation, and what patience makes of it,
// are one transaction. With both, the coordinator's figures are the round's, and the clients' stand beside them.
// Part of ExperimentMachine (experiment_machine.h). Thread: loop. Pure.
#include <algorithm>
#include <limits>

#include "coordinator/experiment_machine.h"
#include "coordinator/limits.h"

namespace causeway {

/// Every so many rounds, and always the last one.
bool ExperimentMachine::evaluation_due(std::uint32_t round) const {
    const auto every = std::max<std::uint32_t>(config_.evaluation.every, 1);
    return round > 0 && config_.evaluation.where != "none" &&
           (round % every == 0 || round == config_.experiment.rounds);
}

/// The job also keeps the model's file until the evaluation is stored: clients may fetch it for as long.
void ExperimentMachine::evaluate_last(Turn turn) {
    const auto last = records_.back();
    if (leaves_out_evaluation(turn, last)) {
        return;
    }
    evaluations_due_.insert(last.round);
    records_.await_evaluation(last.round);
    turn.effects.jobs.push_back(EvaluateModel{id(), last.round, last.model});
    if (config_.evaluation.at_coordinator()) {
        evaluating_here_.insert(last.round);
    }
    if (config_.evaluation.at_clients()) {
        ask_clients(turn, last);
    }
}

/// Rounds that are much faster than their evaluations do not pile up: one that finds too many waiting is left without,
/// so that those which wait have their turn. Never the last one.
bool ExperimentMachine::leaves_out_evaluation(Turn turn, RoundRecord record) {
    if (evaluations_due_.size() < limits::evaluations_behind || record.round == config_.experiment.rounds) {
        return false;
    }
    record.evaluation_note =
        "left out: " + std::to_string(evaluations_due_.size()) + " rounds before it wait for theirs";
    persist_evaluation(record, turn.effects);
    records_.settle(std::move(record));
    return true;
}

/// All that are there and hold the dataset, not only the round's cohort. After a restart nobody is there yet: those who
/// took part are asked as they come back.
void ExperimentMachine::ask_clients(Turn turn, const RoundRecord& record) {
    const auto names = turn.members.live_holders(config_.data.dataset);
    std::set<std::string> asked(names.begin(), names.end());
    const auto request = evaluation_request_for(record, names.size());
    for (const auto& name : names) {
        turn.effects.send.push_back({turn.members.by_node(name)->session, request});
    }
    const auto deadline = config_.sync.straggler_deadline;
    auto patience = deadline > Duration::zero() ? deadline : limits::evaluation_time;
    if (asked.empty()) {
        patience = limits::restart_grace;
        for (const auto& [node, counted] : last_counted_) {
            if (counted.first == record.round) {
                asked.insert(node);
            }
        }
    }
    evaluating_at_clients_.insert_or_assign(record.round, ClientEvaluation(turn.now + patience, std::move(asked)));
    settle_client_evaluations(turn);
}

Request ExperimentMachine::evaluation_request_for(const RoundRecord& record, std::size_t clients) const {
    auto assignment = assignment_;
    assignment.lease.round = record.round;
    assignment.model = record.model;
    assignment.model_bytes = record.model_bytes;
    assignment.cohort = static_cast<std::uint32_t>(clients);
    return evaluate_request(assignment);
}

void ExperimentMachine::ask_to_evaluate(Turn turn, const Member& member) const {
    for (const auto& [round, evaluation] : evaluating_at_clients_) {
        if (evaluation.waits_for(member.node)) {
            const auto clients = turn.members.live_holders(config_.data.dataset).size();
            turn.effects.send.push_back({member.session, evaluation_request_for(*records_.find(round), clients)});
        }
    }
}

void ExperimentMachine::on_client_evaluated(Turn turn, const std::string& node, const Reply& reply) {
    const auto round = static_cast<std::uint32_t>(reply.id & 0xffffffff);
    if (const auto asked = evaluating_at_clients_.find(round); asked != evaluating_at_clients_.end()) {
        asked->second.answer(node, reply);
        settle_client_evaluations(turn);
    }
}

void ExperimentMachine::leave_out_of_evaluations(Turn turn, const std::string& node, const std::string& why) {
    for (auto& [round, evaluation] : evaluating_at_clients_) {
        evaluation.leave_out(node, why);
    }
    settle_client_evaluations(turn);
}

/// In the order of rounds; each settles once, and may end the experiment.
void ExperimentMachine::settle_client_evaluations(Turn turn) {
    std::vector<std::uint32_t> settled;
    for (auto& [round, evaluation] : evaluating_at_clients_) {
        evaluation.tick(turn.now);
        if (evaluation.settled() && !evaluating_here_.contains(round)) {
            settled.push_back(round);
        }
    }
    for (const auto round : settled) {
        settle_evaluation(turn, round);
    }
}

void ExperimentMachine::on_evaluated(Turn turn, const ModelEvaluated& evaluated) {
    if (over() || !evaluations_due_.contains(evaluated.round) || evaluating_here_.erase(evaluated.round) == 0) {
        return;
    }
    evaluated_here_[evaluated.round] = evaluated;
    settle_evaluation(turn, evaluated.round);
}

/// Once all parts are in. Without any figures there is a note, and the run goes on.
void ExperimentMachine::settle_evaluation(Turn turn, std::uint32_t round) {
    const auto clients = evaluating_at_clients_.find(round);
    const bool waits =
        evaluating_here_.contains(round) || (clients != evaluating_at_clients_.end() && !clients->second.settled());
    if (over() || waits || evaluations_due_.erase(round) == 0) {
        return;
    }
    auto record = *records_.find(round);
    if (const auto here = evaluated_here_.extract(round)) {
        record.evaluation = here.mapped();
    }
    if (const auto why = not_evaluated_here_.extract(round)) {
        record.evaluation_note = why.mapped();
    }
    if (clients != evaluating_at_clients_.end()) {
        const auto together = clients->second.together();
        if (!record.evaluation && clients->second.any()) {
            record.evaluation = ModelEvaluated{
                id(), round, together.value("loss"), together.value("accuracy"), together.examples, to_json(together)};
        }
        if (record.evaluation) {
            record.evaluation->detail.set("clients", clients->second.describe());
        }
        if (const auto missing = clients->second.missing(); !missing.empty() && record.evaluation_note.empty()) {
            record.evaluation_note = "not evaluated by " + missing;
        } else if (!record.evaluation && record.evaluation_note.empty()) {
            record.evaluation_note = "no client with this dataset is there to evaluate";
        }
        evaluating_at_clients_.erase(clients);
    }
    persist_evaluation(record, turn.effects);
    records_.settle(std::move(record));
    evaluation_settled(turn, round);
}

/// With its note: who asks later gets it from the store.
void ExperimentMachine::persist_evaluation(const RoundRecord& record, CoordinatorEffects& effects) const {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    SaveEvaluation saved{id(), record.round, none, none, 0, Json::object(), none};
    if (const auto& e = record.evaluation) {
        saved = {id(), record.round, e->loss, e->accuracy, e->examples, e->detail,
                 worth_of(config_.evaluation.metric, metric_of(*e))};
    }
    if (!record.evaluation_note.empty()) {
        saved.detail.set("note", record.evaluation_note);
    }
    effects.persist.push_back(std::move(saved));
}

Instant ExperimentMachine::evaluations_deadline() const {
    Instant next = never;
    for (const auto& [round, evaluation] : evaluating_at_clients_) {
        next = std::min(next, evaluation.deadline());
    }
    return next;
}

}  // namespace causeway
