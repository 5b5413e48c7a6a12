// Who may work on an experiment, who is drawn for a round, and what a node hears that comes, goes or speaks.
// Part of ExperimentMachine (experiment_machine.h). Thread: loop. Pure.
#include <algorithm>

#include "common/random.h"
#include "coordinator/decisions.h"
#include "coordinator/experiment_machine.h"

namespace causeway {

/// A member that was dropped is drawn again only after it resynced; one at work elsewhere has its assignment.
std::vector<std::string> ExperimentMachine::eligible(const Turn& turn) const {
    auto names = turn.members.live_holders(config_.data.dataset);
    std::erase_if(names, [&](const auto& name) { return lapsed_.contains(name) || turn.busy.contains(name); });
    return names;
}

/// Nobody at all is never enough, whatever the file says.
bool ExperimentMachine::enough(std::size_t eligible) const {
    return eligible >= std::max<std::size_t>(config_.sync.min_clients, 1);
}

std::vector<std::string> ExperimentMachine::draw_cohort(const Turn& turn, std::uint32_t round) const {
    auto names = eligible(turn);
    if (!enough(names.size())) {
        return {};
    }
    // A share of those there, or a count; drawn by seed and round from the sorted names, so that only who was there
    // matters and not in which order they came. Who was there is decided by time: the result is persisted.
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

/// Before the first round, and whenever too few are there at a commit.
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
    // Drawn apart from a commit: a line of the log, durable before anybody is assigned.
    auto cohort = draw_cohort(turn, committed_rounds() + 1);
    turn.effects.persist.push_back(
        SaveDecision{id(), committed_rounds() + 1, decisions::cohort, decisions::cohort_detail(cohort)});
    open_round(turn, std::move(cohort), config_.sync.rejoin);
    assign_present(turn);
}

void ExperimentMachine::member_ready(Turn turn, const Member& member, const std::vector<HeldUpdate>& held) {
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
        round_->ready(turn.now, member.node, member.session, open, turn.effects);
        check_round(turn);
    }
}

/// Says what became of an update that is not of an open round.
void ExperimentMachine::answer_held(Turn turn, const Member& member, const HeldUpdate& held) const {
    const auto found = last_counted_.find(member.node);
    // Of each node the latest counted update is known; an older one was resolved before it worked on a later round.
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

/// Its lease is under suspicion; the assignment stays until rejoin is over (lease.h).
void ExperimentMachine::member_lost(Turn turn, const std::string& node, bool session_gone) {
    if (round_) {
        round_->lost(turn.now, node, session_gone, turn.effects);
        check_round(turn);
    }
    if (session_gone) {  // what is asked of a session is answered in it or never
        leave_out_of_evaluations(turn, node, "gone");
    }
}

void ExperimentMachine::member_revoked(Turn turn, const std::string& node, const std::string& why) {
    if (round_) {
        round_->expel(node, "revoked", why, turn.effects);
        check_round(turn);
    }
    leave_out_of_evaluations(turn, node, "revoked");
}

/// Only an open round listens. Late words are answered with what is true now, and change nothing.
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

}  // namespace causeway
