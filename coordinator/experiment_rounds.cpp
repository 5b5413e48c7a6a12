// Rounds of an experiment: opened, closed, committed, evaluated.
//
// A commit is one step: its persists name the snapshot, the participants and the next cohort, its sends tell the old
// cohort and assign the new one. After a crash anywhere in between the store has all of it or nothing of it.
// Part of ExperimentMachine (experiment_machine.h). Thread: loop. Pure.
#include <algorithm>
#include <iterator>

#include "configs/statistics.h"
#include "coordinator/decisions.h"
#include "coordinator/experiment_machine.h"
#include "coordinator/federated_round.h"

namespace causeway {

/// The cohort is durable already, in the commit before it or as a decision.
void ExperimentMachine::open_round(Turn turn, std::vector<std::string> cohort, Duration first_wait) {
    auto assignment = assignment_;
    if (before_statistics()) {
        assignment.program = statistics_program;
    } else {
        assignment.lease.round = committed_rounds() + 1;
        assignment.model = records_.back().model;
        assignment.model_bytes = records_.back().model_bytes;
    }
    turn.effects.jobs.push_back(OpenRound{id(), assignment.lease.round, assignment.model,
                                          static_cast<std::uint32_t>(cohort.size())});
    phase_ = Phase::open;
    clock_.opened(turn.now);
    RoundPlan plan{.epoch = identity_.epoch,
                   .assignment = std::move(assignment),
                   .cohort = std::move(cohort),
                   .quorum = config_.sync.quorum,
                   .rejoin = config_.sync.rejoin,
                   .first_wait = first_wait,
                   .straggler_deadline = config_.sync.straggler_deadline};
    std::ranges::copy_if(plan.cohort, std::inserter(plan.tried, plan.tried.end()),
                         [&](const auto& node) { return latecomers_.tried(node); });
    if (relays_ && plan.assignment.lease.round > 0) {
        open_relays(turn, std::move(plan));
    } else {
        round_ = std::make_unique<FederatedRound>(std::move(plan), turn.now);
    }
}

OpenRound ExperimentMachine::opening() const {
    const auto& plan = round_->plan();
    return {id(), round_->number(), plan.assignment.model, static_cast<std::uint32_t>(plan.cohort.size())};
}

/// The others have first_wait to come; they are assigned when they do.
void ExperimentMachine::assign_present(Turn turn) {
    for (const auto& node : round_->plan().cohort) {
        const auto* member = turn.members.by_node(node);
        if (member != nullptr && !member->silent) {
            ready_in_round(turn, *member, {});
        }
    }
}

/// After everything that can change the round. A failed round leaves the model as it was and ends the experiment.
void ExperimentMachine::check_round(Turn turn) {
    // One whose end has failed for want of segments is looked at again when it is known which are there.
    const bool opens_again = retry_.job && std::holds_alternative<FinishRound>(*retry_.job);
    if (phase_ != Phase::open || opens_again) {
        return;
    }
    if (const auto fault = round_->machine_fault(); !fault.empty()) {
        pause(fault, turn.effects);
    } else if (!retry_.job) {
        go_on(turn.effects);
    }
    for (auto& [node, code] : round_->take_dropped()) {
        clock_.left(turn.now, node, code);
        lapsed_[node] = code;
        if (decisions::is_late(code)) {
            latecomers_.missed(node, round_->number());
        }
    }
    switch (round_->outcome()) {
        case Round::Outcome::open:
            return;
        case Round::Outcome::complete:
            phase_ = Phase::finishing;
            clock_.closed(turn.now);
            run_job(round_->finish(), turn.effects);
            return;
        case Round::Outcome::quorum_lost:
            fail(turn, "quorum_lost: round " + std::to_string(round_->number()) + " needs " +
                           std::to_string(round_->quorum()) + " of " + std::to_string(round_->plan().cohort.size()) +
                           " members, " + std::to_string(round_->possible()) + " left" + round_->why_missing());
            return;
        case Round::Outcome::no_host:
            fail(turn, "no_host: round " + std::to_string(round_->number()) +
                           " has lost its host and no other came in time" + round_->why_missing());
            return;
        case Round::Outcome::zero_total_weight:
            fail(turn,
                 "zero_total_weight: every update of round " + std::to_string(round_->number()) + " has weight 0");
            return;
    }
}

/// The next model is on the disk under its digest; only now can a transaction name it.
void ExperimentMachine::on_snapshot(Turn turn, const SnapshotWritten& snapshot) {
    if (phase_ == Phase::finishing && snapshot.round == round_->number()) {
        job_done(turn.effects);
        snapshot.round == 0 ? commit_statistics(turn, snapshot) : commit(turn, snapshot);
    }
}

void ExperimentMachine::on_commit_stored(Turn turn, const CommitStored& stored) {
    if (!over() && stored.round == committed_rounds()) {
        clock_.commit_stored(turn.now);
    }
}

/// Bytes of a round are the difference of the sockets' totals between two commits, and its time that between them.
void ExperimentMachine::commit(Turn turn, const SnapshotWritten& snapshot) {
    if (const auto before = redo_.find(snapshot.round); before != redo_.end() && before->second != snapshot.model) {
        return fail(turn, "other_bits: round " + std::to_string(snapshot.round) + " was committed as " +
                              before->second.short_hex() + ", which was damaged on the disk, and comes to " +
                              snapshot.model.short_hex() +
                              " when it is done again: its members are not those of then, or not as they were");
    }
    const auto participants = round_->participants();
    const auto times = clock_.times(turn.now, snapshot.aggregate);
    last_times_ = times.parts.json().set("wall", seconds(times.wall)).set("last", times.last);
    auto summary = Json::object()
                       .set("clients", static_cast<std::uint64_t>(participants.size()))
                       .set("cohort", static_cast<std::uint64_t>(round_->plan().cohort.size()))
                       .set("loss", round_->train_loss())
                       .set("seconds", seconds(times.wall))
                       .set("exchange", seconds(times.exchange))
                       .set("bytes_up", snapshot.bytes_up_total - bytes_up_seen_)
                       .set("bytes_down", snapshot.bytes_down_total - bytes_down_seen_)
                       .set("update_norm", snapshot.update_norm)
                       .set("time", last_times_)
                       .set("member_times", times.members);
    if (auto relays = round_->relays(); !relays.is_null()) {
        summary.set("relays", std::move(relays));
    }
    note_traffic(snapshot.bytes_up_total, snapshot.bytes_down_total);
    for (const auto& [node, update] : participants) {
        last_counted_[node] = {snapshot.round, update};
        latecomers_.in_time(node);
    }
    records_.add(record_of({snapshot.round, snapshot.model, snapshot.bytes, summary, std::nullopt}));
    clock_.begin(turn.now);
    std::vector<std::string> cohort;
    std::vector<Persist> log;
    if (snapshot.round < config_.experiment.rounds && !judged(snapshot.round)) {
        cohort = draw_cohort(turn, snapshot.round + 1, log);
    }
    turn.effects.persist.push_back(
        SaveCommit{id(), snapshot.round, snapshot.model, snapshot.bytes, participants, cohort, std::move(summary)});
    std::ranges::move(log, std::back_inserter(turn.effects.persist));
    tell_committed(turn);
    round_.reset();
    if (evaluation_due(snapshot.round)) {
        evaluate_last(turn);
    }
    publish();
    after_commit(turn, std::move(cohort));
}

void ExperimentMachine::note_traffic(std::uint64_t up, std::uint64_t down) {
    bytes_up_seen_ = up;
    bytes_down_seen_ = down;
}

/// All of the cohort: who was dropped or refused must let go of what it may still hold.
void ExperimentMachine::tell_committed(Turn turn) const {
    for (const auto& node : round_->plan().cohort) {
        const auto counted = round_->counted(node);
        if (const auto* member = turn.members.by_node(node)) {
            turn.effects.send.push_back({member->session, Committed{id(), round_->number(), records_.back().model,
                                                                    counted.has_value(), counted.value_or(Digest{})}});
        }
    }
    for (const auto& host : round_->hosts()) {  // what it keeps of the round's turns may go
        if (const auto* member = turn.members.by_node(host)) {
            turn.effects.send.push_back(
                {member->session, Committed{id(), round_->number(), records_.back().model, false, Digest{}}});
        }
    }
}

/// The end, the next round, waiting for members, or for the evaluation that decides whether there is a next round.
void ExperimentMachine::after_commit(Turn turn, std::vector<std::string> next_cohort) {
    const bool last = committed_rounds() >= config_.experiment.rounds;
    if (last || (judged(committed_rounds()) && evaluations_due_.contains(committed_rounds()))) {
        phase_ = Phase::evaluating;
        clock_.waits(turn.now, RoundClock::Wait::evaluation);
        if (evaluations_due_.empty()) {
            end(turn, "succeeded", "");
        }
    } else if (next_cohort.empty()) {
        wait_for_members(turn);
    } else {
        open_round(turn, std::move(next_cohort), config_.sync.rejoin);
        assign_present(turn);
    }
}

std::uint32_t ExperimentMachine::committed_rounds() const {
    return records_.empty() ? 0 : records_.back().round;
}

}  // namespace causeway
