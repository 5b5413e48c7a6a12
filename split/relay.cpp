// One way in for decisions: what happens now and what the log says go through apply().
#include "split/relay.h"

#include <algorithm>
#include <utility>

#include "common/result.h"

namespace causeway {

std::string_view to_string(RelayDecision::Kind kind) {
    switch (kind) {
        case RelayDecision::Kind::handover:
            return "handover";
        case RelayDecision::Kind::skipped:
            return "skipped";
        case RelayDecision::Kind::restarted:
            return "restarted";
        case RelayDecision::Kind::moved:
            return "moved";
    }
    return "";
}

Relay::Relay(RelayPlan plan) : lost_client_(plan.lost_client), handover_copy_(plan.handover_copy), turns_(plan.turns) {
    ASSERT(plan.hosts.size() == plan.groups.size());
    for (std::size_t i = 0; i < plan.groups.size(); ++i) {
        groups_.push_back({.tour = std::move(plan.groups[i]), .host = std::move(plan.hosts[i])});
    }
}

void Relay::restore(const RelayDecision& decision) {
    apply(decision);
}

void Relay::decide(RelayDecision decision) {
    apply(decision);
    decisions_.push_back(std::move(decision));
}

/// Past the clients that are out of the round.
void Relay::advance(Group& group) {
    while (group.next < group.tour.size() && skipped_.contains(group.tour[group.next])) {
        ++group.next;
    }
}

void Relay::apply(const RelayDecision& decision) {
    if (decision.group >= groups_.size()) {
        return;  // a log that does not belong to this plan: the digests will not agree, and replay says so
    }
    Group& group = groups_[decision.group];
    switch (decision.kind) {
        case RelayDecision::Kind::handover:
            group.so_far.segments = decision.segments;
            group.so_far.examples += decision.examples;
            group.so_far.clients.push_back(decision.node);
            group.turn.reset();
            ++group.next;
            break;
        case RelayDecision::Kind::skipped:
            skipped_.insert(decision.node);
            if (group.turn && group.turn->client == decision.node) {
                end_turns(group);
            }
            break;
        case RelayDecision::Kind::restarted:
            group.so_far = {};
            group.next = 0;
            end_turns(group);
            break;
        case RelayDecision::Kind::moved:
            group.host = decision.node;
            end_turns(group);
            break;
    }
    advance(group);
}

/// The group's turn is void, and with it all that it is together with.
void Relay::end_turns(Group& group) {
    group.turn.reset();
    if (turns_ == RelayPlan::Turns::together) {
        for (Group& other : groups_) {
            other.turn.reset();
        }
    }
}

/// Whoever still has a turn, and its host.
bool Relay::all_here() const {
    return std::ranges::all_of(groups_, [&](const Group& group) {
        return group.next >= group.tour.size() || (here(group.tour[group.next]) && here(group.host));
    });
}

std::vector<RelayTurn> Relay::take_turns() {
    std::vector<RelayTurn> turns;
    if (turns_ == RelayPlan::Turns::together && !all_here()) {
        return turns;
    }
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
        Group& group = groups_[i];
        const bool due = !group.turn && group.next < group.tour.size();
        if (!due || !here(group.tour[group.next]) || !here(group.host)) {
            continue;
        }
        group.turn = RelayTurn{.group = i,
                               .attempt = ++group.attempt,
                               .client = group.tour[group.next],
                               .host = group.host,
                               .start = group.so_far.segments};
        turns.push_back(*group.turn);
    }
    return turns;
}

std::vector<RelayDecision> Relay::take_decisions() {
    return std::exchange(decisions_, {});
}

bool Relay::handed_over(std::uint32_t group, std::uint32_t attempt, const Handover& segments, std::uint64_t examples) {
    if (group >= groups_.size() || !groups_[group].turn || groups_[group].turn->attempt != attempt) {
        return false;
    }
    decide({.kind = RelayDecision::Kind::handover,
            .group = group,
            .node = groups_[group].turn->client,
            .segments = segments,
            .examples = examples});
    return true;
}

void Relay::present(const std::string& node) {
    absent_.erase(node);
}

/// A turn cannot go on without both; the work since the last hand-over is given up.
void Relay::lost(const std::string& node) {
    absent_.insert(node);
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
        Group& group = groups_[i];
        const bool of_host = group.host == node;
        if (of_host && handover_copy_ == RelayPlan::Copy::none && group.next < group.tour.size() &&
            !group.so_far.clients.empty()) {
            decide({.kind = RelayDecision::Kind::restarted, .group = i, .node = node});
        }
        if (group.turn && (of_host || group.turn->client == node)) {
            end_turns(group);
        }
    }
    if (lost_client_ == RelayPlan::LostClient::skip) {
        for (const std::string& gone : absent_) {  // also who had counted, where the group has begun anew
            skip(gone);
        }
    }
}

/// Only a client that has not counted yet can be left out.
void Relay::skip(const std::string& client) {
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
        const Group& group = groups_[i];
        const auto place = std::ranges::find(group.tour, client);
        if (place == group.tour.end() || skipped_.contains(client) ||
            std::ranges::count(group.so_far.clients, client) > 0) {
            continue;
        }
        decide({.kind = RelayDecision::Kind::skipped, .group = i, .node = client});
    }
}

void Relay::replace_host(const std::string& host, const std::string& next) {
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
        const bool moves = turns_ == RelayPlan::Turns::together || groups_[i].next < groups_[i].tour.size();
        if (groups_[i].host == host && moves) {
            decide({.kind = RelayDecision::Kind::moved, .group = i, .node = next});
        }
    }
}

void Relay::restart(std::uint32_t group) {
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
        const bool with_it = turns_ == RelayPlan::Turns::together && !groups_[i].so_far.clients.empty();
        if (i == group || with_it) {
            decide({.kind = RelayDecision::Kind::restarted, .group = i, .node = groups_[i].host});
        }
    }
}

void Relay::mend() {
    const auto some = std::ranges::find_if(groups_, [](const Group& group) { return !group.so_far.clients.empty(); });
    if (turns_ == RelayPlan::Turns::together && some != groups_.end() && outcome() == Outcome::open) {
        restart(static_cast<std::uint32_t>(some - groups_.begin()));
    }
}

std::vector<std::string> Relay::coming(std::uint32_t group, std::size_t most) const {
    const Group& of = groups_.at(group);
    std::vector<std::string> clients;
    for (std::size_t place = of.next; place < of.tour.size() && clients.size() < most; ++place) {
        if (!skipped_.contains(of.tour[place])) {
            clients.push_back(of.tour[place]);
        }
    }
    return clients;
}

std::size_t Relay::left(std::uint32_t group) const {
    const Group& of = groups_.at(group);
    const auto from = of.tour.begin() + static_cast<std::ptrdiff_t>(std::min(of.next, of.tour.size()));
    return static_cast<std::size_t>(
        std::count_if(from, of.tour.end(), [&](const std::string& client) { return !skipped_.contains(client); }));
}

Relay::Outcome Relay::outcome() const {
    const auto over = [](const Group& group) { return group.next >= group.tour.size(); };
    return std::ranges::all_of(groups_, over) ? Outcome::complete : Outcome::open;
}

std::vector<RelayResult> Relay::results() const {
    std::vector<RelayResult> results;
    for (const Group& group : groups_) {
        if (!group.so_far.clients.empty()) {
            results.push_back(group.so_far);
        }
    }
    return results;
}

std::size_t Relay::counted() const {
    std::size_t count = 0;
    for (const Group& group : groups_) {
        count += group.so_far.clients.size();
    }
    return count;
}

std::size_t Relay::possible() const {
    std::size_t count = 0;
    for (const Group& group : groups_) {
        count += static_cast<std::size_t>(
            std::ranges::count_if(group.tour, [&](const std::string& client) { return !skipped_.contains(client); }));
    }
    return count;
}

std::string Relay::waits_for(std::uint32_t group) const {
    const Group& of = groups_.at(group);
    if (of.turn || of.next >= of.tour.size()) {
        return "";
    }
    return !here(of.host) ? "host" : !here(of.tour[of.next]) ? "client" : "";
}

}  // namespace causeway
