// The rules of relays: a hand-over is durable before anything rests on it, rests on what is here, and counts once.
// Part of Invariants (invariants.h).
#include "coordinator/decisions.h"
#include "simulation/invariants.h"

namespace causeway::simulation {

/// What groups start from is here when the round is open.
void Invariants::opened(const RoundOpened& opened) {
    auto& relays = seen_[opened.experiment].relays;
    for (const auto& [segment, bytes] : opened.segments) {
        relays.here.insert(segment);
    }
}

void Invariants::check_relays(const SaveDecision& save) {
    auto& seen = seen_[save.experiment];
    auto& relays = seen.relays;
    const auto group = static_cast<std::uint32_t>(save.detail["group"].integer());
    if (save.kind == decisions::groups) {
        std::set<std::string> all;
        relays.groups.clear();
        relays.hosts.clear();
        for (const auto& names : save.detail["groups"].items()) {
            auto& members = relays.groups.emplace_back();
            for (const auto& name : names.items()) {
                members.insert(name.text());
                require(all.insert(name.text()).second, "in two groups", name.text());
            }
        }
        for (const auto& host : save.detail["hosts"].items()) {
            relays.hosts.push_back(host.text());
        }
        require(all == seen.cohort, "groups of others than the cohort");
        require(relays.hosts.size() == relays.groups.size(), "groups without a host");
    } else if (save.kind == "handover") {
        check_handover(save);
    } else if (save.kind == "moved" && group < relays.hosts.size()) {
        relays.hosts[group] = save.detail["node"].text();
    } else if (save.kind == "restarted" && group < relays.groups.size()) {
        relays.last.erase(group);
        for (const auto& client : relays.groups[group]) {
            relays.handed_over.erase(client);
        }
    }
}

void Invariants::check_handover(const SaveDecision& save) {
    auto& seen = seen_[save.experiment];
    auto& relays = seen.relays;
    const auto group = static_cast<std::uint32_t>(save.detail["group"].integer());
    const auto node = save.detail["node"].text();
    const auto client = digest_from_hex(save.detail["client_segment"].text()).value_or(Digest{});
    const auto server = digest_from_hex(save.detail["server_segment"].text()).value_or(Digest{});
    require(group < relays.groups.size() && relays.groups[group].contains(node), "a hand-over in another group", node);
    const bool copied = save.detail["server_copied"].boolean(true);
    require(relays.here.contains(client) && (!copied || relays.here.contains(server)),
            "a hand-over of what is not here", node);
    require(!seen.left_out.contains(node), "a hand-over of somebody who is left out", node);
    require(relays.handed_over.emplace(node, client).second, "its turn counts twice", node);
    relays.last[group] = {client, server};
    relays.examples += static_cast<std::uint64_t>(save.detail["examples"].integer());
}

/// Its start is the last hand-over of its group that is durable, or what the round began with.
void Invariants::check_turn(const std::string& node, const Assign& assign) {
    const auto& relays = seen_[assign.lease.experiment].relays;
    const bool known = assign.group < relays.groups.size();
    require(known && (relays.groups[assign.group].contains(node) || relays.hosts[assign.group] == node),
            "assigned a turn of a group that it is not in", node);
    const auto last = relays.last.find(assign.group);
    const bool at_host = last != relays.last.end() && relays.hosts[assign.group] == node;
    require(at_host || relays.here.contains(assign.model), "assigned a segment that is not here", node);
    require(last == relays.last.end() || last->second.first == assign.model || last->second.second == assign.model,
            "assigned another start than its group's last hand-over", node);
    require(!relays.handed_over.contains(node), "assigned a turn that has counted", node);
}

void Invariants::check_relay_sum(const SaveCommit& save) {
    const auto& relays = seen_[save.experiment].relays;
    require(relays.handed_over.size() == save.participants.size(), "the hand-overs are of others than the commit says");
    for (const auto& [node, segment] : save.participants) {
        const auto found = relays.handed_over.find(node);
        require(found != relays.handed_over.end() && found->second == segment, "committed, but not handed over", node);
    }
    for (const auto& [group, segments] : relays.last) {
        require(relays.here.contains(segments.first) && relays.here.contains(segments.second),
                "committed without the last segments of a group");
    }
    require(relays.examples > 0, "the weights of a commit add up to nothing");
    attempts_.erase({epoch_, save.experiment, save.round});
}

}  // namespace causeway::simulation
