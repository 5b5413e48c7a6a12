// The life of an experiment: from the queue to its end, its jobs, and what a restart goes on with.
// Members are in experiment_members.cpp, rounds and commits in experiment_rounds.cpp, what it shows in
// experiment_report.cpp. Thread: loop. Pure.
#include "coordinator/experiment_machine.h"

#include <algorithm>

#include "common/json_lists.h"
#include "coordinator/decisions.h"
#include "coordinator/limits.h"

namespace causeway {
ExperimentMachine::ExperimentMachine(Identity identity, SaveExperiment saved, Experiment config, Assign assignment)
    : identity_(std::move(identity)),
      saved_(std::move(saved)),
      config_(std::move(config)),
      assignment_(std::move(assignment)) {
    assignment_.lease = {identity_.epoch, saved_.experiment, 0, 0};
    records_.judge_by(config_.evaluation.metric);
    if (identity_.best_before) {
        records_.consider(*identity_.best_before);
    }
    if (auto relays = relay_texts_of(config_)) {  // one that cannot be read has failed before it runs
        relays_ = *std::move(relays);
    }
}

ExperimentMachine::ExperimentMachine(Identity identity, const RecoveredExperiment& recovered, Experiment config,
                                     Assign assignment)
    : ExperimentMachine(std::move(identity), recovered.saved, std::move(config), std::move(assignment)) {
    restore(recovered);
}

/// Only values: what follows from them is decided in resume(), when effects can be given.
void ExperimentMachine::restore(const RecoveredExperiment& recovered) {
    records_ = recovered.rounds;
    records_.judge_by(config_.evaluation.metric);
    if (identity_.best_before) {
        records_.consider(*identity_.best_before);
    }
    last_times_ = recovered.last_times;
    last_counted_ = recovered.last_counted;
    last_drawn_ = recovered.last_drawn;
    recovered_cohort_ = recovered.next_cohort;
    recovered_decisions_ = recovered.decisions;
    redo_ = recovered.redo;
    phase_ = over() ? Phase::over : Phase::queued;
    published_ = records_.empty() ? 0 : records_.front().round;
    // The last evaluation may have been under way; its round's event waits for it as before.
    const bool settled =
        records_.empty() || records_.back().evaluation || !records_.back().evaluation_note.empty();
    if (!over() && evaluation_due(committed_rounds()) && !settled) {
        evaluations_due_.insert(committed_rounds());
    }
    publish();
    if (over()) {
        close();
    }
}

void ExperimentMachine::submit(CoordinatorEffects& effects) {
    effects.persist.push_back(saved_);
}

/// Which build runs it is settled now, and stored with the change of state.
void ExperimentMachine::start(Turn turn) {
    saved_.build = identity_.build;
    set_state("starting", "", turn.effects);
    clock_.begin(turn.now);
    wait_for_members(turn);
}

/// Goes on from the last commit: with its cohort, or the one drawn after it, less those that were dropped or refused.
void ExperimentMachine::resume(Turn turn) {
    if (!active()) {
        return;
    }
    if (!saved_.build.empty() && !identity_.build.empty() && saved_.build != identity_.build) {
        phase_ = Phase::pinned;
        pause("other_build: it was begun by " + saved_.build + " and this is " + identity_.build +
              "; start that build again, or cancel it and go on with `causeway experiment resume " +
                  std::to_string(id()) + "`",
              turn.effects);
        return;
    }
    clock_.begin(turn.now);
    set_state(records_.empty() ? "starting" : "running", "", turn.effects);
    if (!evaluations_due_.empty()) {
        evaluate_last(turn);
    }
    // A cohort that was drawn after waiting stands in the decision log, not in the commit.
    auto cohort = recovered_cohort_;
    for (const auto& decision : recovered_decisions_) {
        if (decision.kind == decisions::cohort) {
            cohort = texts_of(decision.detail["members"]);
        } else if (decision.kind == decisions::late) {
            latecomers_.restore(decision.detail["nodes"]);
        }
    }
    if (records_.empty() && cohort.empty()) {
        wait_for_members(turn);
        return;
    }
    if (cohort.empty() || committed_rounds() >= config_.experiment.rounds) {
        after_commit(turn, {});
        return;
    }
    // Counted anew: members could not come back while there was nobody to come back to.
    open_round(turn, std::move(cohort), std::max<Duration>(config_.sync.rejoin, limits::restart_grace));
    for (const auto& decision : recovered_decisions_) {
        round_->restore(decision);
        if (decision.kind == decisions::dropped || decision.kind == decisions::refused) {
            clock_.left(turn.now, decision.detail["node"].text(), decision.detail["code"].text());
            if (decisions::is_late(decision.detail["code"].text())) {
                latecomers_.missed(decision.detail["node"].text(), round_->number());
            }
        }
    }
    assign_present(turn);
    check_round(turn);
}

void ExperimentMachine::cancel(Turn turn, const std::string& who) {
    end(turn, "cancelled", who.empty() ? "" : "cancelled by " + who);
}

void ExperimentMachine::fail(Turn turn, const std::string& reason) {
    end(turn, "failed", reason);
}

/// Terminal states absorb: only the first end counts.
void ExperimentMachine::end(Turn turn, const std::string& state, const std::string& reason) {
    if (over()) {
        return;
    }
    const bool worked = active();
    set_state(state, reason, turn.effects);
    // What this step has assigned before it came to the end is not begun.
    std::erase_if(turn.effects.send, [this](const Send& send) {
        const auto* assign = std::get_if<Assign>(&send.message);
        return assign != nullptr && assign->lease.experiment == id();
    });
    phase_ = Phase::over;
    round_.reset();
    retry_ = {};
    evaluations_due_.clear();
    evaluating_here_.clear();
    evaluating_at_clients_.clear();
    evaluated_here_.clear();
    not_evaluated_here_.clear();
    publish();
    // Clients drop what they hold of it; sums and spooled updates go.
    if (worked) {
        for (const auto& [node, member] : turn.members.members()) {
            if (member.role == "client" || (member.role == "host" && relays_)) {
                turn.effects.send.push_back({member.session, Ended{id(), state, reason}});
            }
        }
        turn.effects.jobs.push_back(ReleaseExperiment{id()});
    }
}

/// Compare and set: only a change is persisted.
void ExperimentMachine::set_state(const std::string& state, const std::string& reason, CoordinatorEffects& effects) {
    if (saved_.state != state || saved_.reason != reason) {
        saved_.state = state;
        saved_.reason = reason;
        effects.persist.push_back(saved_);
    }
}

// ---------------------------------------------------------------- jobs

/// Remembered until its answer: a failure of this machine asks for the same job again.
void ExperimentMachine::run_job(Job job, CoordinatorEffects& effects) {
    retry_.job = job;
    retry_.at = never;
    effects.jobs.push_back(std::move(job));
}

void ExperimentMachine::job_done(CoordinatorEffects& effects) {
    retry_ = {};
    go_on(effects);
}

/// Not persisted: it is true of this machine now, and a disk that is full cannot store that it is.
void ExperimentMachine::pause(const std::string& reason, CoordinatorEffects& effects) {
    if (saved_.state != "paused" || saved_.reason != reason) {
        effects.say.push_back("experiment " + std::to_string(id()) + " is paused: " + reason);
    }
    saved_.state = "paused";
    saved_.reason = reason;
}

/// To what the store has said all the while.
void ExperimentMachine::go_on(CoordinatorEffects& effects) {
    if (saved_.state == "paused") {
        effects.say.push_back("experiment " + std::to_string(id()) + " goes on");
        saved_.state = records_.empty() ? "starting" : "running";
        saved_.reason.clear();
    }
}

void ExperimentMachine::on_job_failed(Turn turn, const JobFailed& failed) {
    if (over()) {
        return;
    }
    if (failed.job == "evaluate") {  // a missing evaluation never stops a run: the column stays empty
        if (evaluations_due_.contains(failed.round) && evaluating_here_.erase(failed.round) != 0) {
            not_evaluated_here_[failed.round] = failed.error.message;
            settle_evaluation(turn, failed.round);
        }
        return;
    }
    // An answer to a job of a phase that is over changes nothing.
    const bool expected =
        (phase_ == Phase::making && failed.job == "make_model") ||
        (phase_ == Phase::open && failed.job == "open_round" && failed.round == round_->number()) ||
        (phase_ == Phase::finishing && failed.job == "finish_round" && failed.round == round_->number());
    if (!expected) {
        return;
    }
    // Segments that are lost: their groups can begin anew. The job stays noted until the round is open again.
    const bool lost = failed.error.kind == ErrorKind::not_found || failed.error.kind == ErrorKind::corrupt;
    if (phase_ == Phase::finishing && relays_ && lost && round_->number() > 0) {
        phase_ = Phase::open;
        pause(failed.error.code + ": " + failed.error.message, turn.effects);
        turn.effects.jobs.push_back(opening());
        return;
    }
    if (phase_ == Phase::open) {  // its success has no answer, so it was not remembered
        retry_.job = opening();
    }
    // Only what this machine can get over is tried again: a full disk, not a model that cannot be made.
    if (failed.error.kind != ErrorKind::io && failed.error.kind != ErrorKind::overloaded) {
        return fail(turn, failed.error.code + ": " + failed.error.message);
    }
    retry_.pause = retry_.pause == Duration::zero() ? limits::job_retry_first
                                                    : std::min(retry_.pause * 2, limits::job_retry_longest);
    retry_.at = turn.now + retry_.pause;
    pause(failed.error.code + ": " + failed.error.message, turn.effects);
}

void ExperimentMachine::on_model_made(Turn turn, const ModelMade& made) {
    if (phase_ != Phase::making) {
        return;
    }
    job_done(turn.effects);
    clock_.begin(turn.now);
    note_traffic(made.bytes_up_total, made.bytes_down_total);
    // A resumed experiment begins with its parent's commit: the number of a round decides batches and draws.
    RoundRecord first{.round = saved_.parent_round, .model = made.model, .model_bytes = made.bytes};
    if (identity_.origin) {
        first.evaluation = identity_.origin->evaluation;
    }
    records_.add(std::move(first));
    published_ = saved_.parent_round;
    // The first cohort is part of the same transaction: a restart needs no second draw.
    std::vector<Persist> log;
    auto cohort = draw_cohort(turn, saved_.parent_round + 1, log);
    turn.effects.persist.push_back(
        SaveCommit{id(), saved_.parent_round, made.model, made.bytes, {}, cohort, Json::object()});
    std::ranges::move(log, std::back_inserter(turn.effects.persist));
    set_state("running", "", turn.effects);
    after_commit(turn, std::move(cohort));
}

void ExperimentMachine::on_absorbed(Turn turn, const UpdateAbsorbed& absorbed) {
    if (phase_ == Phase::open && absorbed.round == round_->number()) {
        if (absorbed.refusal) {
            clock_.left(turn.now, absorbed.node, absorbed.refusal->code);
        } else if (!absorbed.fetch_error) {
            clock_.absorbed(turn.now, absorbed.node, absorbed.verify, absorbed.aggregate);
        }
        round_->on_absorbed(turn.now, absorbed, turn.effects);
        check_round(turn);
    }
}

void ExperimentMachine::evaluation_settled(Turn turn, std::uint32_t round) {
    publish();
    if (phase_ != Phase::evaluating || round != committed_rounds()) {
        return;
    }
    if (committed_rounds() >= config_.experiment.rounds) {
        end(turn, "succeeded", "");
    } else if (out_of_patience()) {
        stop_early(turn);
    } else {
        wait_for_members(turn);
    }
}

// ---------------------------------------------------------------- time

/// Each phase with a limit looks at its own; the other phases end by a job's answer.
void ExperimentMachine::tick(Turn turn) {
    settle_client_evaluations(turn);
    if (phase_ == Phase::waiting) {
        look_for_members(turn);
    } else if (turn.now >= retry_.at && retry_.job) {
        retry_.at = never;
        turn.effects.jobs.push_back(*retry_.job);
        if (phase_ == Phase::open) {
            retry_.job.reset();
        }
    }
    if (phase_ == Phase::open) {
        round_->tick(turn.now, turn.effects);
        check_round(turn);
    }
}

Instant ExperimentMachine::deadline() const {
    const auto evaluated = evaluations_deadline();
    switch (phase_) {
        case Phase::waiting:
            return std::min(wait_until_, evaluated);
        case Phase::open:
            return std::min({round_->deadline(), retry_.at, evaluated});
        case Phase::making:
        case Phase::finishing:
            return std::min(retry_.at, evaluated);
        case Phase::queued:
        case Phase::evaluating:
        case Phase::over:
        case Phase::pinned:
            break;
    }
    return evaluated;
}

/// The absorbing states.
bool ExperimentMachine::over() const {
    return saved_.state == "succeeded" || saved_.state == "failed" || saved_.state == "cancelled";
}

/// Also while a round is being finished: mostly the same nodes go on with the next, which opens in the commit's step.
std::vector<StreamPair> ExperimentMachine::streams() const {
    const bool working = phase_ == Phase::open || phase_ == Phase::finishing;
    return working ? round_->streams() : std::vector<StreamPair>{};
}

std::vector<std::string> ExperimentMachine::members_in_round() const {
    return round_ ? round_->plan().cohort : std::vector<std::string>{};
}

}  // namespace causeway
