// The life of an experiment; what it shows is in experiment_report.cpp. See experiment_machine.h.
#include "coordinator/experiment_machine.h"

#include <algorithm>

#include "common/random.h"
#include "coordinator/decisions.h"
#include "coordinator/limits.h"

namespace causeway {
namespace {

void send_to(const Turn& turn, const std::string& node, Message message) {
    if (const auto* member = turn.members.by_node(node)) {
        turn.effects.send.push_back({member->session, std::move(message)});
    }
}

}  // namespace

ExperimentMachine::ExperimentMachine(Identity identity, SaveExperiment saved, Experiment config, Assign assignment)
    : identity_(std::move(identity)),
      saved_(std::move(saved)),
      config_(std::move(config)),
      assignment_(std::move(assignment)) {
    assignment_.lease = {identity_.epoch, saved_.experiment, 0, 0};
}

ExperimentMachine::ExperimentMachine(Identity identity, const RecoveredExperiment& recovered, Experiment config,
                                     Assign assignment)
    : ExperimentMachine(std::move(identity), recovered.saved, std::move(config), std::move(assignment)) {
    restore(recovered);
}

void ExperimentMachine::restore(const RecoveredExperiment& recovered) {
    for (const auto& round : recovered.rounds) {
        auto& record = records_.emplace_back(RoundRecord{round.round, round.model, round.model_bytes, round.summary, {}});
        if (const auto& e = round.evaluation) {
            record.evaluation = ModelEvaluated{e->experiment, e->round, e->loss, e->accuracy, e->examples};
        }
    }
    last_counted_ = recovered.last_counted;
    recovered_cohort_ = recovered.next_cohort;
    recovered_decisions_ = recovered.decisions;
    phase_ = over() ? Phase::over : Phase::queued;
    if (!over() && evaluation_due(committed_rounds()) && !records_.back().evaluation) {
        evaluations_due_.insert(committed_rounds());
    }
    publish();
}

void ExperimentMachine::submit(CoordinatorEffects& effects) { effects.persist.push_back(saved_); }

void ExperimentMachine::start(Turn turn) {
    set_state("starting", "", turn.effects);
    wait_for_members(turn);
}

void ExperimentMachine::resume(Turn turn) {
    if (!active()) {
        return;
    }
    if (records_.empty()) {
        set_state("starting", "", turn.effects);
        wait_for_members(turn);
        return;
    }
    set_state("running", "", turn.effects);
    if (!evaluations_due_.empty()) {
        evaluate_last(turn.effects);
    }
    auto cohort = recovered_cohort_;
    for (const auto& decision : recovered_decisions_) {
        if (decision.kind == decisions::cohort) {
            cohort.clear();
            for (const auto& name : decision.detail["members"].items()) {
                cohort.push_back(name.text());
            }
        }
    }
    if (cohort.empty() || committed_rounds() >= config_.experiment.rounds) {
        after_commit(turn, {});
        return;
    }
    open_round(turn, std::move(cohort), std::max<Duration>(config_.sync.rejoin, limits::restart_grace));
    for (const auto& decision : recovered_decisions_) {
        round_->restore(decision);
    }
    assign_present(turn);
    check_round(turn);
}

void ExperimentMachine::cancel(Turn turn, const std::string& who) {
    end(turn, "cancelled", who.empty() ? "" : "cancelled by " + who);
}

void ExperimentMachine::fail(Turn turn, const std::string& reason) { end(turn, "failed", reason); }

/// Terminal states absorb: only the first end counts.
void ExperimentMachine::end(Turn turn, const std::string& state, const std::string& reason) {
    if (over()) {
        return;
    }
    const bool worked = active();
    set_state(state, reason, turn.effects);
    phase_ = Phase::over;
    round_.reset();
    retry_ = {};
    evaluations_due_.clear();
    publish();
    if (worked) {
        for (const auto& [node, member] : turn.members.members()) {
            if (member.role == "client") {
                send_to(turn, node, Ended{id(), state, reason});
            }
        }
        turn.effects.jobs.push_back(ReleaseExperiment{id()});
    }
}

void ExperimentMachine::set_state(const std::string& state, const std::string& reason, CoordinatorEffects& effects) {
    if (saved_.state != state || saved_.reason != reason) {
        saved_.state = state;
        saved_.reason = reason;
        effects.persist.push_back(saved_);
    }
}

// ---------------------------------------------------------------- members

std::vector<std::string> ExperimentMachine::eligible(const Turn& turn) const {
    auto names = turn.members.live_holders(config_.data.dataset);
    std::erase_if(names, [&](const auto& name) { return lapsed_.contains(name) || turn.busy.contains(name); });
    return names;
}

bool ExperimentMachine::enough(std::size_t eligible) const {
    return eligible >= std::max<std::size_t>(config_.sync.min_clients, 1);
}

std::vector<std::string> ExperimentMachine::draw_cohort(const Turn& turn, std::uint32_t round) const {
    auto names = eligible(turn);
    if (!enough(names.size())) {
        return {};
    }
    const auto wanted = config_.sync.cohort.of(static_cast<std::uint32_t>(names.size()));
    if (wanted >= names.size()) {
        return names;
    }
    RandomStream stream({.seed = config_.experiment.seed, .purpose = "cohort", .round = round});
    const auto order = stream.permutation(names.size());
    std::vector<std::string> cohort;
    for (std::size_t i = 0; i < wanted; ++i) {
        cohort.push_back(names[order[i]]);
    }
    std::sort(cohort.begin(), cohort.end());
    return cohort;
}

void ExperimentMachine::wait_for_members(Turn turn) {
    phase_ = Phase::waiting;
    const auto timeout = config_.sync.start_timeout;
    wait_until_ = timeout > Duration::zero() && timeout < never - turn.now ? turn.now + timeout : never;
    look_for_members(turn);
}

void ExperimentMachine::look_for_members(Turn turn) {
    const auto there = eligible(turn).size();
    if (!enough(there)) {
        if (turn.now >= wait_until_) {
            const auto needed = std::max<std::uint32_t>(config_.sync.min_clients, 1);
            fail(turn, "insufficient clients " + std::to_string(there) + "/" + std::to_string(needed));
        }
        return;
    }
    wait_until_ = never;
    if (records_.empty()) {
        phase_ = Phase::making;
        run_job(MakeModel{id()}, turn.effects);
        return;
    }
    auto cohort = draw_cohort(turn, committed_rounds() + 1);
    turn.effects.persist.push_back(
        SaveDecision{id(), committed_rounds() + 1, decisions::cohort, decisions::cohort_detail(cohort)});
    open_round(turn, std::move(cohort), config_.sync.rejoin);
    assign_present(turn);
}

void ExperimentMachine::member_ready(Turn turn, const Member& member, const std::vector<HeldUpdate>& held) {
    Digest open;
    for (const auto& update : held) {
        if (phase_ == Phase::open && update.round == round_->number() && round_->has_member(member.node)) {
            open = update.digest;
        } else if (phase_ != Phase::finishing || update.round != round_->number()) {
            answer_held(turn, member, update);  // that of a round being committed is answered by the commit
        }
    }
    lapsed_.erase(member.node);
    if (phase_ == Phase::waiting) {
        look_for_members(turn);
    } else if (round_) {
        round_->ready(turn.now, member.node, member.session, open, turn.effects);
        check_round(turn);
    }
}

/// Says what became of an update that is not of an open round.
void ExperimentMachine::answer_held(Turn turn, const Member& member, const HeldUpdate& held) const {
    const auto found = last_counted_.find(member.node);
    const bool counted = found != last_counted_.end() && found->second == std::pair(held.round, held.digest);
    if (over() && !counted) {
        turn.effects.send.push_back({member.session, Ended{id(), saved_.state, saved_.reason}});
        return;
    }
    const auto& model = held.round < records_.size() ? records_[held.round].model : held.start_model;
    turn.effects.send.push_back({member.session, Committed{id(), held.round, model, counted, held.digest}});
    if (over()) {
        turn.effects.send.push_back({member.session, Ended{id(), saved_.state, saved_.reason}});
    }
}

void ExperimentMachine::member_lost(Turn turn, const std::string& node, bool session_gone) {
    if (round_) {
        round_->lost(turn.now, node, session_gone, turn.effects);
        check_round(turn);
    }
}

void ExperimentMachine::on_message(Turn turn, const Member& member, const Message& message) {
    if (const auto* offer = std::get_if<Offer>(&message)) {
        if (phase_ == Phase::open) {
            round_->on_offer(member.node, member.session, *offer, turn.effects);
        } else if (over()) {
            turn.effects.send.push_back({member.session, Ended{id(), saved_.state, saved_.reason}});
        } else {
            turn.effects.send.push_back({member.session, Refused{offer->lease, offer->update.digest, "stale_lease",
                                                                 "that round is closed", "", 0}});
        }
    } else if (const auto* progress = std::get_if<Progress>(&message)) {
        if (phase_ == Phase::open) {
            round_->on_progress(member.node, *progress);
        }
    } else if (const auto* decline = std::get_if<Decline>(&message)) {
        if (decline->code == "dropped") {  // it knows, and has let go of the round: it may be drawn again
            if (lapsed_.erase(member.node) != 0 && phase_ == Phase::waiting) {
                look_for_members(turn);
            }
        } else if (phase_ == Phase::open) {
            round_->on_decline(member.node, *decline, turn.effects);
        }
    }
    check_round(turn);
}

// ---------------------------------------------------------------- jobs

void ExperimentMachine::run_job(Job job, CoordinatorEffects& effects) {
    retry_.job = job;
    retry_.at = never;
    effects.jobs.push_back(std::move(job));
}

void ExperimentMachine::job_done(CoordinatorEffects& effects) {
    retry_ = {};
    if (saved_.state == "paused") {
        set_state(records_.empty() ? "starting" : "running", "", effects);
    }
}

void ExperimentMachine::on_job_failed(Turn turn, const JobFailed& failed) {
    if (over()) {
        return;
    }
    if (failed.job == "evaluate") {  // evaluation never delays and never stops a run: the column stays empty
        if (evaluations_due_.erase(failed.round) != 0) {
            evaluation_settled(turn, failed.round);
        }
        return;
    }
    const bool expected = (phase_ == Phase::making && failed.job == "make_model") ||
                          (phase_ == Phase::finishing && failed.job == "finish_round" && failed.round == round_->number());
    if (!expected || !retry_.job) {
        return;
    }
    retry_.pause = retry_.pause == Duration::zero() ? limits::job_retry_first
                                                    : std::min(retry_.pause * 2, limits::job_retry_longest);
    retry_.at = turn.now + retry_.pause;
    set_state("paused", failed.error.code + ": " + failed.error.message, turn.effects);
}

void ExperimentMachine::on_model_made(Turn turn, const ModelMade& made) {
    if (phase_ != Phase::making) {
        return;
    }
    job_done(turn.effects);
    records_.push_back({0, made.model, made.bytes, Json::object(), {}});
    auto cohort = draw_cohort(turn, 1);
    turn.effects.persist.push_back(SaveCommit{id(), 0, made.model, made.bytes, {}, cohort, Json::object()});
    set_state("running", "", turn.effects);
    after_commit(turn, std::move(cohort));
}

void ExperimentMachine::on_absorbed(Turn turn, const UpdateAbsorbed& absorbed) {
    if (phase_ == Phase::open && absorbed.round == round_->number()) {
        round_->on_absorbed(turn.now, absorbed, turn.effects);
        check_round(turn);
    }
}

void ExperimentMachine::on_evaluated(Turn turn, const ModelEvaluated& evaluated) {
    if (over() || evaluations_due_.erase(evaluated.round) == 0) {
        return;
    }
    records_.at(evaluated.round).evaluation = evaluated;
    turn.effects.persist.push_back(
        SaveEvaluation{id(), evaluated.round, evaluated.loss, evaluated.accuracy, evaluated.examples});
    evaluation_settled(turn, evaluated.round);
}

void ExperimentMachine::evaluation_settled(Turn turn, std::uint32_t round) {
    publish();
    if (phase_ == Phase::evaluating && round == config_.experiment.rounds) {
        end(turn, "succeeded", "");
    }
}

// ---------------------------------------------------------------- rounds

void ExperimentMachine::open_round(Turn turn, std::vector<std::string> cohort, Duration first_wait) {
    auto assignment = assignment_;
    assignment.lease.round = committed_rounds() + 1;
    assignment.model = records_.back().model;
    assignment.model_bytes = records_.back().model_bytes;
    turn.effects.jobs.push_back(OpenRound{id(), assignment.lease.round, assignment.model});
    phase_ = Phase::open;
    opened_at_ = turn.now;
    round_.emplace(RoundPlan{.epoch = identity_.epoch,
                             .assignment = std::move(assignment),
                             .cohort = std::move(cohort),
                             .quorum = config_.sync.quorum,
                             .rejoin = config_.sync.rejoin,
                             .first_wait = first_wait,
                             .straggler_deadline = config_.sync.straggler_deadline},
                   turn.now);
}

void ExperimentMachine::assign_present(Turn turn) {
    for (const auto& node : round_->plan().cohort) {
        const auto* member = turn.members.by_node(node);
        if (member != nullptr && !member->silent) {
            round_->ready(turn.now, node, member->session, {}, turn.effects);
        }
    }
}

void ExperimentMachine::check_round(Turn turn) {
    if (phase_ != Phase::open) {
        return;
    }
    for (auto& node : round_->take_dropped()) {
        lapsed_.insert(std::move(node));
    }
    switch (round_->outcome()) {
        case Round::Outcome::open: return;
        case Round::Outcome::complete:
            phase_ = Phase::finishing;
            run_job(FinishRound{id(), round_->number()}, turn.effects);
            return;
        case Round::Outcome::quorum_lost:
            fail(turn, "quorum_lost: round " + std::to_string(round_->number()) + " needs " +
                           std::to_string(round_->quorum()) + " of " + std::to_string(round_->plan().cohort.size()) +
                           " members, " + std::to_string(round_->possible()) + " left");
            return;
        case Round::Outcome::zero_total_weight:
            fail(turn, "zero_total_weight: every update of round " + std::to_string(round_->number()) +
                           " has weight 0");
            return;
    }
}

void ExperimentMachine::on_snapshot(Turn turn, const SnapshotWritten& snapshot) {
    if (phase_ == Phase::finishing && snapshot.round == round_->number()) {
        job_done(turn.effects);
        commit(turn, snapshot);
    }
}

void ExperimentMachine::commit(Turn turn, const SnapshotWritten& snapshot) {
    const auto participants = round_->participants();
    auto summary = Json::object()
                       .set("clients", static_cast<std::uint64_t>(participants.size()))
                       .set("loss", round_->train_loss())
                       .set("seconds", seconds(turn.now - opened_at_))
                       .set("bytes_up", snapshot.bytes_up_total - bytes_up_seen_)
                       .set("bytes_down", snapshot.bytes_down_total - bytes_down_seen_)
                       .set("update_norm", snapshot.update_norm);
    bytes_up_seen_ = snapshot.bytes_up_total;
    bytes_down_seen_ = snapshot.bytes_down_total;
    for (const auto& [node, update] : participants) {
        last_counted_[node] = {snapshot.round, update};
    }
    records_.push_back({snapshot.round, snapshot.model, snapshot.bytes, summary, {}});
    std::vector<std::string> cohort;
    if (snapshot.round < config_.experiment.rounds) {
        cohort = draw_cohort(turn, snapshot.round + 1);
    }
    turn.effects.persist.push_back(
        SaveCommit{id(), snapshot.round, snapshot.model, snapshot.bytes, participants, cohort, std::move(summary)});
    tell_committed(turn);
    round_.reset();
    if (evaluation_due(snapshot.round)) {
        evaluate_last(turn.effects);
    }
    publish();
    after_commit(turn, std::move(cohort));
}

void ExperimentMachine::tell_committed(Turn turn) const {
    for (const auto& node : round_->plan().cohort) {
        const auto counted = round_->counted(node);
        send_to(turn, node,
                Committed{id(), round_->number(), records_.back().model, counted.has_value(), counted.value_or(Digest{})});
    }
}

void ExperimentMachine::after_commit(Turn turn, std::vector<std::string> next_cohort) {
    if (committed_rounds() >= config_.experiment.rounds) {
        phase_ = Phase::evaluating;
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

bool ExperimentMachine::evaluation_due(std::uint32_t round) const {
    const auto every = std::max<std::uint32_t>(config_.evaluation.every, 1);
    return round > 0 && config_.evaluation.where == "coordinator" &&
           (round % every == 0 || round == config_.experiment.rounds);
}

void ExperimentMachine::evaluate_last(CoordinatorEffects& effects) {
    const auto& last = records_.back();
    evaluations_due_.insert(last.round);
    effects.jobs.push_back(EvaluateModel{id(), last.round, last.model});
}

std::uint32_t ExperimentMachine::committed_rounds() const { return records_.empty() ? 0 : records_.back().round; }

// ---------------------------------------------------------------- time

void ExperimentMachine::tick(Turn turn) {
    if (phase_ == Phase::waiting) {
        look_for_members(turn);
    } else if (phase_ == Phase::open) {
        round_->tick(turn.now, turn.effects);
        check_round(turn);
    } else if (turn.now >= retry_.at && retry_.job) {
        retry_.at = never;
        turn.effects.jobs.push_back(*retry_.job);
    }
}

Instant ExperimentMachine::deadline() const {
    switch (phase_) {
        case Phase::waiting: return wait_until_;
        case Phase::open: return round_->deadline();
        case Phase::making:
        case Phase::finishing: return retry_.at;
        case Phase::queued:
        case Phase::evaluating:
        case Phase::over: break;
    }
    return never;
}

bool ExperimentMachine::over() const {
    return saved_.state == "succeeded" || saved_.state == "failed" || saved_.state == "cancelled";
}

std::vector<std::string> ExperimentMachine::members_in_round() const {
    return round_ ? round_->plan().cohort : std::vector<std::string>{};
}

}  // namespace causeway
