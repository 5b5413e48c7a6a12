// See membership.h.
#include "coordinator/membership.h"

#include <algorithm>
#include <set>

#include "coordinator/limits.h"

namespace causeway {
namespace {

bool holds(const std::vector<DatasetDeclaration>& datasets, std::string_view name) {
    return std::any_of(datasets.begin(), datasets.end(), [&](const auto& d) { return d.name == name; });
}

/// What was declared before stays known: a dataset that a node once held is not misspelt.
std::vector<DatasetDeclaration> merged(std::vector<DatasetDeclaration> now,
                                       const std::vector<DatasetDeclaration>& before) {
    for (const auto& old : before) {
        if (!holds(now, old.name) && now.size() < limits::datasets_per_node) {
            now.push_back(old);
        }
    }
    std::sort(now.begin(), now.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return now;
}

}  // namespace

/// References to members are valid until the next open or close.
const Member& Membership::open(const SessionOpened& opened, CoordinatorEffects& effects) {
    const auto& hello = opened.hello;
    Member fresh{opened.node,    opened.role,    opened.session,          false,
                 hello.datasets, hello.software, hello.compute_signature, opened.fingerprint,
                 hello.addresses};
    fresh.memory = hello.memory;
    fresh.splits = std::ranges::count(hello.features, split_feature) > 0;
    if (opened.role == "operator") {
        return operators_[opened.session] = std::move(fresh);
    }
    if (const auto* older = by_node(opened.node)) {
        effects.close.push_back({older->session, "taken_over", "a newer session of this identity has taken over"});
        nodes_by_session_.erase(older->session);
    }
    auto& member = members_[opened.node] = std::move(fresh);
    expected_.erase(opened.node);
    nodes_by_session_[opened.session] = opened.node;
    if (opened.role == "client") {
        auto& known = declared_[opened.node];
        auto told = member.datasets;
        for (auto& dataset : told) {
            dataset.labels.clear();  // shared for as long as it is there, and not kept
        }
        auto all = merged(std::move(told), known);
        if (all != known) {
            known = all;
            effects.persist.push_back(SaveDeclaration{opened.node, std::move(all)});
        }
    }
    return member;
}

/// A session that was taken over is no longer in the table, so its end does not touch the newer one.
std::string Membership::close(Instant now, SessionId session) {
    const auto found = nodes_by_session_.find(session);
    const auto node = found == nodes_by_session_.end() ? std::string() : found->second;
    if (!node.empty() && just_stood_still(now)) {
        expected_[node] = {now + limits::restart_grace, members_.at(node).role};
    }
    forget(session);
    return node;
}

void Membership::forget(SessionId session) {
    operators_.erase(session);
    if (const auto found = nodes_by_session_.find(session); found != nodes_by_session_.end()) {
        members_.erase(found->second);
        nodes_by_session_.erase(found);
    }
}

bool Membership::expects_any(std::string_view dataset, bool hosts) const {
    return std::ranges::any_of(expected_, [&](const auto& entry) {
        const auto known = declared_.find(entry.first);
        return entry.second.role == "host" ? hosts : known != declared_.end() && holds(known->second, dataset);
    });
}

std::vector<std::string> Membership::give_up(Instant now) {
    std::vector<std::string> nodes;
    for (const auto& [node, expected] : expected_) {
        if (now >= expected.until) {
            nodes.push_back(node);
        }
    }
    for (const auto& node : nodes) {
        expected_.erase(node);
    }
    return nodes;
}

Instant Membership::next_given_up() const {
    Instant next = never;
    for (const auto& [node, expected] : expected_) {
        next = std::min(next, expected.until);
    }
    return next;
}

std::vector<SessionId> Membership::revoke(std::string_view node) {
    std::vector<SessionId> sessions;
    for (const auto& [session, member] : operators_) {
        if (member.node == node) {
            sessions.push_back(session);
        }
    }
    if (const auto* member = by_node(node)) {
        sessions.push_back(member->session);
    }
    for (const auto session : sessions) {
        forget(session);
    }
    if (const auto found = expected_.find(node); found != expected_.end()) {
        expected_.erase(found);
    }
    return sessions;
}

const Member* Membership::set_silent(SessionId session, bool silent) {
    const auto found = nodes_by_session_.find(session);
    if (found == nodes_by_session_.end()) {
        return nullptr;
    }
    auto& member = members_.at(found->second);
    if (member.silent == silent) {
        return nullptr;
    }
    member.silent = silent;
    return &member;
}

const Member* Membership::by_session(SessionId session) const {
    if (const auto found = operators_.find(session); found != operators_.end()) {
        return &found->second;
    }
    const auto found = nodes_by_session_.find(session);
    return found == nodes_by_session_.end() ? nullptr : by_node(found->second);
}

const Member* Membership::by_node(std::string_view node) const {
    const auto found = members_.find(node);
    return found == members_.end() ? nullptr : &found->second;
}

/// In the order of names: draws and waits must not depend on who came first.
std::vector<std::string> Membership::live_holders(std::string_view dataset) const {
    std::vector<std::string> names;
    for (const auto& [node, member] : members_) {
        if (member.role == "client" && !member.silent && holds(member.datasets, dataset)) {
            names.push_back(node);
        }
    }
    return names;
}

std::uint64_t Membership::examples_of(std::string_view node, std::string_view dataset) const {
    const auto* member = by_node(node);
    if (member != nullptr) {
        for (const auto& declared : member->datasets) {
            if (declared.name == dataset) {
                return declared.examples;
            }
        }
    }
    return 0;
}

bool Membership::ever_declared(std::string_view dataset) const {
    return std::any_of(declared_.begin(), declared_.end(),
                       [&](const auto& entry) { return holds(entry.second, dataset); });
}

std::vector<std::string> Membership::known_datasets() const {
    std::set<std::string> names;
    for (const auto& [node, datasets] : declared_) {
        for (const auto& dataset : datasets) {
            names.insert(dataset.name);
        }
    }
    return {names.begin(), names.end()};
}

}  // namespace causeway
