// Link cores without sockets: frames are passed by hand, on a clock of the test's own.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <vector>

#include "tests/wire/fixtures.h"
#include "wire/link_core.h"

namespace causeway {

/// Carries frames between a server core and client cores; a connection can be held up, or be full.
struct Network final : LinkPort {
    std::map<ConnectionId, std::deque<Bytes>> sent;
    std::set<ConnectionId> full;
    std::set<ConnectionId> expelled;

    Sent send(ConnectionId connection, Bytes& frame) override {
        if (full.contains(connection)) {
            return Sent::full;
        }
        sent[connection].push_back(std::move(frame));
        return Sent::yes;
    }
    void expel(ConnectionId connection) override { expelled.insert(connection); }
    ConnectionId new_connection() override { return next++; }
    ConnectionId next = 1000;
};

struct Node {
    Network network;
    LinkCore core;
    std::vector<LinkEvent> events;

    Node(std::optional<ChannelContext> accepting, std::optional<ChannelContext> connecting, LinkLimits limits = {},
         AdmitPeer admit = {})
        : core(limits, {std::move(accepting), std::move(connecting)}, network, std::move(admit)) {}
    /// With streams, as a process of that identity has them.
    explicit Node(const Credentials& own, LinkLimits limits = {})
        : core(limits,
               {*ChannelContext::accepting_nodes(own), *ChannelContext::connecting(own),
                *ChannelContext::connecting_to_nodes(own)},
               network, {}, LinkEnd::node) {}
    template <class T>
    std::vector<T> take() {
        for (auto& event : core.take_events()) {
            events.push_back(std::move(event));
        }
        std::vector<T> found;
        std::erase_if(events, [&](auto& event) {
            const bool match = std::holds_alternative<T>(event);
            if (match) {
                found.push_back(std::get<T>(event));
            }
            return match;
        });
        return found;
    }
};

}  // namespace causeway
