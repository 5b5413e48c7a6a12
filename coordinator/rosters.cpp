// See rosters.h.
#include "coordinator/rosters.h"

#include <algorithm>

namespace causeway {
namespace {

RosterEntry entry_for(const Member& other, ExperimentId experiment) {
    return {.node = other.node,
            .role = other.role,
            .fingerprint = other.fingerprint,
            .experiment = experiment,
            .addresses = other.role == "host" ? other.addresses : std::vector<std::string>{},
            .expires_ms = static_cast<std::uint32_t>(
                std::chrono::duration_cast<std::chrono::milliseconds>(roster_life).count())};
}

}  // namespace

Instant Rosters::keep(Instant now, const std::vector<Pair>& pairs, const Membership& members,
                      CoordinatorEffects& effects) {
    std::map<std::string, Roster> wanted;
    for (const auto& [experiment, nodes] : pairs) {
        const auto* client = members.by_node(nodes.client);
        const auto* host = members.by_node(nodes.host);
        if (client != nullptr && host != nullptr) {
            wanted[nodes.client].entries.push_back(entry_for(*host, experiment));
            wanted[nodes.host].entries.push_back(entry_for(*client, experiment));
        }
    }
    for (const auto& [node, told] : told_) {
        wanted.try_emplace(node);  // whom nobody may talk to any more hears that once
    }
    Instant look_again = never;
    std::vector<Send> first;
    for (auto& [node, roster] : wanted) {
        const auto* member = members.by_node(node);
        if (member == nullptr) {
            told_.erase(node);
            continue;
        }
        auto& told = told_[node];
        const bool renews = !roster.entries.empty() && now >= told.renew_at;
        if (told.session != member->session || told.roster != roster || renews) {
            told = {member->session, roster, now + roster_renewal};
            first.push_back({member->session, roster});
        }
        if (roster.entries.empty()) {
            told_.erase(node);
        } else {
            look_again = std::min(look_again, told.renew_at);
        }
    }
    effects.send.insert(effects.send.begin(), first.begin(), first.end());
    return look_again;
}

}  // namespace causeway
