// What becomes of the nodes of an experiment: those it waits for, and those that come, go or speak.
// Part of ExperimentMachine (experiment_machine.h). Thread: loop. Pure.
#include <algorithm>
#include <cmath>

#include "coordinator/decisions.h"
#include "coordinator/experiment_machine.h"
#include "coordinator/limits.h"

namespace causeway {

/// Before the first round, and whenever too few are there at a commit.
void ExperimentMachine::wait_for_members(Turn turn) {
    phase_ = Phase::waiting;
    waiting_since_ = turn.now;
    clock_.waits(turn.now, RoundClock::Wait::members);
    count_start_timeout(turn.now);
    look_for_members(turn);
}

void ExperimentMachine::count_start_timeout(Instant now) {
    const auto timeout = config_.sync.start_timeout;
    wait_until_ = timeout > Duration::zero() && timeout < never - now ? now + timeout : never;
}

/// The start timeout is about clients that are not there. Those at work for another experiment are there: its round
/// ends, and then it is this one's turn (machine_queue.cpp).
void ExperimentMachine::look_for_members(Turn turn) {
    const Busy nobody{.host_bytes = turn.busy.host_bytes};
    const Turn alone{turn.now, turn.members, nobody, turn.effects};
    if (relays_ && !look_for_hosts(turn)) {
        return;
    }
    // The first model can be made while they are still at work elsewhere.
    if (usable(records_.empty() && !before_statistics() ? alone : turn).empty()) {
        if (!usable(alone).empty() || expects_members(turn)) {
            count_start_timeout(turn.now);
        } else if (turn.now >= wait_until_) {
            const auto needed = std::max<std::uint32_t>(config_.sync.min_clients, 1);
            const auto few = eligible(alone).size();
            auto reason = "insufficient clients " + std::to_string(few) + "/" + std::to_string(needed);
            if (const auto others = turn.members.live_holders(config_.data.dataset); relays_ && others.size() > few) {
                reason += "; others are there and do not take cells of a cut model: join them with --allow split";
            }
            fail(turn, reason);
        }
        return;
    }
    wait_until_ = never;
    if (before_statistics()) {
        return gather_statistics(turn);
    }
    if (records_.empty()) {
        phase_ = Phase::making;
        clock_.waits(turn.now, RoundClock::Wait::members);
        run_job(MakeModel{id(), identity_.origin ? identity_.origin->model : Digest{}}, turn.effects);
        return;
    }
    // Drawn apart from a commit: a line of the log, durable before anybody is assigned.
    std::vector<Persist> log;
    auto cohort = draw_cohort(turn, committed_rounds() + 1, log);
    turn.effects.persist.push_back(
        SaveDecision{id(), committed_rounds() + 1, decisions::cohort, decisions::cohort_detail(cohort)});
    std::ranges::move(log, std::back_inserter(turn.effects.persist));
    open_round(turn, std::move(cohort), config_.sync.rejoin);
    assign_present(turn);
}

void ExperimentMachine::member_ready(Turn turn, const Member& member, const std::vector<HeldUpdate>& held) {
    if (pinned()) {
        return;  // the build that goes on with it answers what is held
    }
    // What it holds is answered before it is assigned anything: training starts from a base that is settled.
    Digest open;
    for (const auto& update : held) {
        if (phase_ == Phase::open && update.round == round_->number() && round_->has_member(member.node)) {
            open = update.digest;
        } else if (phase_ != Phase::finishing || update.round != round_->number()) {
            answer_held(turn, member, update);  // that of a round being committed is answered by the commit
        }
    }
    lapsed_.erase(member.node);
    ask_to_evaluate(turn, member);
    if (phase_ == Phase::waiting) {
        look_for_members(turn);
    } else if (round_) {
        ready_in_round(turn, member, open);
        check_round(turn);
    }
}

void ExperimentMachine::ready_in_round(Turn turn, const Member& member, const Digest& held) {
    if (round_->has_member(member.node)) {
        clock_.assigned(turn.now, member.node);
    }
    round_->ready(turn.now, member.node, member.session, held, turn.effects);
}

/// The node keeps state of this experiment and may not have been there at its end.
void ExperimentMachine::answer_over(const Turn& turn, SessionId session) const {
    turn.effects.send.push_back({session, Ended{id(), saved_.state, saved_.reason}});
}

/// Says what became of an update that is not of an open round.
void ExperimentMachine::answer_held(Turn turn, const Member& member, const HeldUpdate& held) const {
    const auto found = last_counted_.find(member.node);
    // Of each node the latest counted update is known; an older one was resolved before it worked on a later round.
    const bool counted = found != last_counted_.end() && found->second == std::pair(held.round, held.digest);
    if (over() && !counted) {
        answer_over(turn, member.session);
        return;
    }
    const auto* committed = records_.find(held.round);  // of one long ago only the store knows what came of it
    const auto& model = committed != nullptr ? committed->model : held.start_model;
    turn.effects.send.push_back({member.session, Committed{id(), held.round, model, counted, held.digest}});
    if (over()) {
        answer_over(turn, member.session);
    }
}

/// Its lease is under suspicion; the assignment stays until rejoin is over (lease.h).
void ExperimentMachine::member_lost(Turn turn, const std::string& node, bool session_gone) {
    if (round_) {
        round_->lost(turn.now, node, session_gone, grace_of(turn), turn.effects);
        check_round(turn);
    }
    // What is asked of a session is answered in it or never; of one that ended for our sake it is asked again.
    if (session_gone && !turn.members.expects(node)) {
        leave_out_of_evaluations(turn, node, "gone");
    }
}

/// Who gave us up while this process stood still comes back as after a restart.
Duration ExperimentMachine::grace_of(const Turn& turn) {
    return turn.members.just_stood_still(turn.now) ? limits::restart_grace : Duration::zero();
}

void ExperimentMachine::member_given_up(Turn turn, const std::string& node) {
    leave_out_of_evaluations(turn, node, "gone");
}

void ExperimentMachine::member_revoked(Turn turn, const std::string& node, const std::string& why) {
    if (round_) {
        if (relays_ && phase_ == Phase::open) {
            round_->tick(turn.now, turn.effects);  // what is due comes first, and the time is known
        }
        round_->expel(node, "revoked", why, turn.effects);
        check_round(turn);
    }
    leave_out_of_evaluations(turn, node, "revoked");
}

/// One whose trainer hangs has to come with a new session: its old one would take the next assignment just as well.
void ExperimentMachine::hears_drop(Turn turn, const std::string& node) {
    const auto lapsed = lapsed_.find(node);
    if (lapsed == lapsed_.end() || lapsed->second == "no_progress") {
        return;
    }
    lapsed_.erase(lapsed);
    if (phase_ == Phase::waiting) {
        look_for_members(turn);
    }
}

/// Only an open round listens. Late words are answered with what is true now, and change nothing.
void ExperimentMachine::on_message(Turn turn, const Member& member, const Message& message) {
    if (relays_ && phase_ == Phase::open && !std::holds_alternative<Progress>(message)) {
        round_->tick(turn.now, turn.effects);  // what is due comes first, and the time is known
    }
    if (const auto* offer = std::get_if<Offer>(&message)) {
        if (phase_ == Phase::open) {
            clock_.offered(turn.now, member.node, offer->update.metrics.train_seconds);
            const auto took = offer->update.metrics.train_seconds;
            const bool turns = relays_ && round_->number() > 0;
            if (turns && member.role == "client" && std::isfinite(took) && took > 0) {
                turn_seconds_[member.node] = took;
            }
            round_->on_offer(member.node, member.session, *offer, turn.effects);
        } else if (over()) {
            answer_over(turn, member.session);
        } else {
            turn.effects.send.push_back({member.session, Refused{offer->lease, offer->update.digest, "stale_lease",
                                                                 "that round is closed", "", 0}});
        }
    } else if (const auto* progress = std::get_if<Progress>(&message)) {
        if (phase_ == Phase::open) {
            if (progress->step > 0) {
                clock_.working(turn.now, member.node);
            }
            round_->on_progress(turn.now, member.node, *progress);
        }
    } else if (const auto* decline = std::get_if<Decline>(&message)) {
        if (decline->code == "dropped") {  // it knows, and has let go of the round: it may be drawn again
            hears_drop(turn, member.node);
        } else if (phase_ == Phase::open) {
            round_->on_decline(member.node, *decline, turn.effects);
        }
    }
    check_round(turn);
}

}  // namespace causeway
