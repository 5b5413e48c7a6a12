// Rounds of relays: hosts that are there, groups and their hosts, and the round that is opened with them.
//
// Who trains in which group rests on what earlier rounds have measured, and on which hosts are there: it is a line of
// the decision log, persisted with the cohort before anybody is assigned. Part of ExperimentMachine
// (experiment_machine.h). Thread: loop. Pure.
#include <algorithm>

#include "common/json_lists.h"
#include "coordinator/decisions.h"
#include "coordinator/experiment_machine.h"
#include "coordinator/relay_round.h"

namespace causeway {
namespace {

// Before anything is measured: as if every example took so long. Only the proportions matter.
constexpr double guessed_seconds = 0.001;

}  // namespace

std::vector<std::string> ExperimentMachine::live_hosts(const Turn& turn) const {
    std::vector<std::string> names;
    for (const auto& [name, member] : turn.members.members()) {
        if (member.role == "host" && member.splits && !member.silent && of_this_build(member)) {
            names.push_back(name);
        }
    }
    return names;
}

void ExperimentMachine::host_ready(Turn turn, const Member& member) {
    if (!relays_ || pinned() || !of_this_build(member) || !member.splits) {
        return;
    }
    if (phase_ == Phase::waiting) {
        look_for_members(turn);
    } else if (phase_ == Phase::open) {
        round_->host_ready(turn.now, member.node, member.session, turn.effects);
        check_round(turn);
    }
}

/// The groups of this round: those that the log has, those of the round before, or new ones.
RelayGroups ExperimentMachine::groups_for(const Turn& turn, const std::vector<std::string>& cohort,
                                          std::uint32_t round) {
    for (const auto& decision : recovered_decisions_) {
        if (decision.kind == decisions::groups && decision.round == round) {
            RelayGroups logged;
            for (const auto& group : decision.detail["groups"].items()) {
                logged.groups.push_back(texts_of(group));
            }
            logged.hosts = texts_of(decision.detail["hosts"]);
            for (const auto& [name, count] : decision.detail["examples"].fields()) {
                logged.examples[name] = static_cast<std::uint64_t>(count.integer());
            }
            return logged;
        }
    }
    RelayGroups made;
    auto seconds = Json::object();
    std::size_t grouped = 0;
    for (const auto& group : groups_.groups) {
        grouped += group.size();
    }
    const bool same = grouped == cohort.size() && std::ranges::all_of(groups_.groups, [&](const auto& group) {
        return std::ranges::all_of(group, [&](const auto& name) { return std::ranges::binary_search(cohort, name); });
    });
    if (relays_->regroup == RelayTexts::Regroup::once && same) {
        made.groups = groups_.groups;
    } else {
        GroupingInput input{.seed = config_.experiment.seed, .round = round, .fixed = relays_->group_lists};
        for (const auto& name : cohort) {
            const auto measured = turn_seconds_.find(name);
            const auto examples = turn.members.examples_of(name, config_.data.dataset);
            const double took =
                measured != turn_seconds_.end() ? measured->second : guessed_seconds * static_cast<double>(examples);
            input.clients.push_back({.name = name, .turn_seconds = took});
            seconds.set(name, took);
        }
        const auto wanted = relays_->groups == 0 ? cohort.size() : relays_->groups;
        input.groups = static_cast<std::uint32_t>(std::min(wanted, cohort.size()));
        auto groups = make_groups(relays_->groups == 0 ? "random" : relays_->grouping, input);
        if (!groups) {  // fixed lists that do not name this cohort: longest first is always possible
            groups = make_groups("time", input);
        }
        made.groups = groups.value_or(Groups{cohort});
    }
    auto examples = Json::object();
    for (const auto& name : cohort) {
        made.examples[name] = turn.members.examples_of(name, config_.data.dataset);
        examples.set(name, made.examples[name]);
    }
    const auto hosts = live_hosts(turn);
    for (std::size_t i = 0; i < made.groups.size(); ++i) {
        const auto which = relays_->turns == RelayPlan::Turns::together ? 0 : i;
        made.hosts.push_back(hosts.empty() ? "" : hosts[which % hosts.size()]);
    }
    auto lists = Json::array();
    for (const auto& group : made.groups) {
        lists.push(json_of(group));
    }
    turn.effects.persist.push_back(SaveDecision{id(), round, decisions::groups,
                                                Json::object()
                                                    .set("groups", std::move(lists))
                                                    .set("hosts", json_of(made.hosts))
                                                    .set("grouping", relays_->grouping)
                                                    .set("examples", std::move(examples))
                                                    .set("seconds", std::move(seconds))});
    return made;
}

void ExperimentMachine::open_relays(Turn turn, RoundPlan plan) {
    groups_ = groups_for(turn, plan.cohort, plan.assignment.lease.round);
    RelayRoundPlan relays{.round = std::move(plan),
                          .relay = {.groups = groups_.groups,
                                    .hosts = groups_.hosts,
                                    .lost_client = relays_->lost_client,
                                    .handover_copy = relays_->handover_copy,
                                    .turns = relays_->turns},
                          .client = relays_->client,
                          .host = relays_->host,
                          .loss = relays_->loss,
                          .examples = groups_.examples,
                          .host_wait = config_.sync.start_timeout};
    round_ = std::make_unique<RelayRound>(std::move(relays), turn.now);
    for (const auto& name : live_hosts(turn)) {
        const auto* member = turn.members.by_node(name);
        round_->host_ready(turn.now, name, member->session, turn.effects);
    }
}

void ExperimentMachine::on_round_opened(Turn turn, const RoundOpened& opened) {
    if (phase_ == Phase::open && opened.round == round_->number()) {
        if (opened.round == 0) {
            return note_traffic(opened.bytes_up_total, opened.bytes_down_total);
        }
        round_->opened(turn.now, opened, turn.effects);
        if (retry_.job && std::holds_alternative<FinishRound>(*retry_.job)) {
            const auto why = saved_.reason;
            job_done();
            if (round_->outcome() == Round::Outcome::complete) {  // it was not for want of a segment
                return fail(turn, why);
            }
        }
        check_round(turn);
    }
}

}  // namespace causeway
