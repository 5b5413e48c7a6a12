// Rounds of relays: hosts that are there, groups and their hosts, and the round that is opened with them.
//
// Who trains in which group rests on what earlier rounds have measured, and on which hosts are there: it is a line of
// the decision log, persisted with the cohort before anybody is assigned. Part of ExperimentMachine
// (experiment_machine.h). Thread: loop. Pure.
#include <algorithm>

#include "common/json_lists.h"
#include "common/text.h"
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

std::uint64_t ExperimentMachine::rows_at_host(const Turn& turn) const {
    std::uint64_t largest = 1;
    for (const auto& name : turn.members.live_holders(config_.data.dataset)) {
        largest = std::max(largest, turn.members.examples_of(name, config_.data.dataset));
    }
    return config_.train.batch == 0 ? largest : std::min<std::uint64_t>(config_.train.batch, largest);
}

/// Clients that train together share one segment at one host, whatever their number.
std::vector<std::string> ExperimentMachine::hosts_for(const Turn& turn, std::size_t all_groups) const {
    const bool together = relays_->turns == RelayPlan::Turns::together;
    const std::size_t groups = together ? std::min<std::size_t>(all_groups, 1) : all_groups;
    struct Room {
        std::string name;
        std::uint64_t groups = 0;
    };
    const auto each = std::max<std::uint64_t>(relays_->host_memory.of(rows_at_host(turn)), 1);
    std::vector<Room> rooms;
    for (const auto& name : live_hosts(turn)) {
        const auto memory = turn.members.by_node(name)->memory;
        const auto others = turn.busy.host_bytes.find(name);
        const auto taken = others == turn.busy.host_bytes.end() ? 0 : others->second;
        const auto used = taken + relays_->host_memory.once;
        rooms.push_back({name, memory == 0 ? groups : (memory - std::min(memory, used)) / each});
    }
    std::vector<std::string> chosen;
    for (std::size_t next = 0, passed = 0; chosen.size() < groups && passed < rooms.size(); ++next) {
        auto& room = rooms[next % rooms.size()];
        passed = room.groups == 0 ? passed + 1 : 0;
        if (room.groups > 0) {
            --room.groups;
            chosen.push_back(room.name);
        }
    }
    chosen.resize(groups);
    chosen.resize(all_groups, together && groups > 0 ? chosen.front() : "");
    return chosen;
}

/// Every number that decided, and what changes it.
std::string ExperimentMachine::why_no_room(const Turn& turn, std::size_t groups) const {
    auto text = "insufficient host memory for " + to_text(relays_->host_memory, groups, rows_at_host(turn)) + ":";
    for (const auto& name : live_hosts(turn)) {
        const auto others = turn.busy.host_bytes.find(name);
        text += " " + name + " has " + format_bytes(turn.members.by_node(name)->memory) + ", " +
                format_bytes(others == turn.busy.host_bytes.end() ? 0 : others->second) +
                " of it for other experiments;";
    }
    return text + " choose fewer groups, a later cut or a smaller batch, give a host more (join --memory), or join "
                  "another host";
}

/// Whether the groups of a round have hosts, with room for all of them at one time.
bool ExperimentMachine::look_for_hosts(Turn turn) {
    std::string why = "insufficient hosts 0/1: start one with a token of role host and `join --allow split`";
    if (!live_hosts(turn).empty()) {
        const auto clients = config_.sync.cohort.of(static_cast<std::uint32_t>(eligible(turn).size()));
        const bool together = relays_->turns == RelayPlan::Turns::together;
        const std::size_t groups = together ? 1 : relays_->groups == 0 ? clients : relays_->groups;
        const auto hosts = hosts_for(turn, groups);
        if (std::ranges::find(hosts, "") == hosts.end()) {
            return true;
        }
        why = why_no_room(turn, groups);
    }
    if (turn.now >= wait_until_) {
        fail(turn, why);
    }
    return false;
}

std::map<std::string, std::uint64_t> ExperimentMachine::host_bytes() const {
    std::map<std::string, std::uint64_t> bytes;
    if (relays_ && active() && phase_ != Phase::pinned) {
        const bool together = relays_->turns == RelayPlan::Turns::together;
        for (const auto& host : round_ ? round_->host_of_group() : groups_.hosts) {
            auto& taken = bytes.try_emplace(host, relays_->host_memory.once).first->second;
            taken = together ? relays_->host_memory.once + group_bytes_ : taken + group_bytes_;
        }
    }
    return bytes;
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

/// What the grouping `labels` works with, and who shares nothing: a line of the log for each of both.
void ExperimentMachine::add_labels(const Turn& turn, GroupingInput& input, Json& detail) const {
    auto histograms = Json::object();
    auto without = Json::array();
    for (auto& client : input.clients) {
        const auto* member = turn.members.by_node(client.name);
        for (const auto& dataset : member != nullptr ? member->datasets : std::vector<DatasetDeclaration>()) {
            if (dataset.name == config_.data.dataset) {
                client.labels = dataset.labels;
            }
        }
        if (client.labels.empty()) {
            without.push(client.name);
            continue;
        }
        histograms.set(client.name, json_of(client.labels));
    }
    detail.set("labels", std::move(histograms)).set("without_labels", std::move(without));
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
    auto detail = Json::object();
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
        if (relays_->grouping == "labels" && relays_->groups != 0) {
            add_labels(turn, input, detail);
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
    // Where room has become scarce since the round was due, a host says so itself, with its numbers.
    made.hosts = hosts_for(turn, made.groups.size());
    const auto hosts = live_hosts(turn);
    for (std::size_t i = 0; i < made.hosts.size() && !hosts.empty(); ++i) {
        const auto which = relays_->turns == RelayPlan::Turns::together ? 0 : i;
        made.hosts[i] = made.hosts[i].empty() ? hosts[which % hosts.size()] : made.hosts[i];
    }
    auto lists = Json::array();
    for (const auto& group : made.groups) {
        lists.push(json_of(group));
    }
    detail.set("groups", std::move(lists))
        .set("hosts", json_of(made.hosts))
        .set("grouping", relays_->grouping)
        .set("examples", std::move(examples))
        .set("seconds", std::move(seconds));
    turn.effects.persist.push_back(SaveDecision{id(), round, decisions::groups, std::move(detail)});
    return made;
}

void ExperimentMachine::open_relays(Turn turn, RoundPlan plan) {
    groups_ = groups_for(turn, plan.cohort, plan.assignment.lease.round);
    group_bytes_ = relays_->host_memory.of(rows_at_host(turn));
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
            job_done(turn.effects);
            if (round_->outcome() == Round::Outcome::complete) {  // it was not for want of a segment
                return fail(turn, why);
            }
        }
        check_round(turn);
    }
}

}  // namespace causeway
