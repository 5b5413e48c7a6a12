// The relay's rules, at the coordinator: which node's frames go to which, how many, and for how long. No socket, no
// clock; what is inside the frames it cannot know, for it is a TLS session of the two nodes.
//
// A node has one relay connection and any number of pairs on it, each with a number: its own for those it asked for,
// ours (the top bit set) for those it was asked for. Only pairs that the coordinator has allowed are forwarded; a
// receiver grants its sender credits, which we count and bound, so what may lie here of a pair is bounded too.
//
// threads  the link thread
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "wire/link.h"

namespace causeway {

constexpr std::uint64_t relay_window = 4 << 20;  // credits that a sender may have at a time
constexpr std::size_t relay_piece = 64 << 10;    // of a frame: a second at 0.5 Mbit/s, see wire/liveness.h
constexpr std::size_t relay_pairs_per_node = 64;
constexpr std::uint64_t relay_number_bit = std::uint64_t{1} << 63;

struct RelaySink {
    std::function<void(ConnectionId carrier, Message)> send;
    /// On the node's control connection, so that it opens a relay connection. False: it has no session.
    std::function<bool(const std::string& node, RelayOpen)> ask;
};

class RelayTable {
public:
    explicit RelayTable(RelaySink sink) : sink_(std::move(sink)) {}

    /// In place of what was said before; what is left out ends. Bytes of a pair go on being counted while it is here.
    void allow(std::vector<RelayPair> pairs, Instant now);
    /// A node's relay connection; the newest is used for what others ask of it.
    void opened(ConnectionId carrier, const std::string& node);
    void closed(ConnectionId carrier);
    /// errors   invalid `bad_pair`, `unknown_pair`, `wrong_connection`: counted as the peer's bad message
    Status handle(ConnectionId from, Message&& message, Instant now);
    void tick(Instant now);
    [[nodiscard]] std::vector<RelayUse> use() const;
    [[nodiscard]] bool empty() const { return relays_.empty(); }

private:
    struct Key {
        std::string first;  // in order of their names
        std::string second;
        std::uint64_t experiment = 0;
        auto operator<=>(const Key&) const = default;
    };
    struct Permit {
        Instant expires{};
        std::uint64_t quota = 0;
        std::uint64_t bytes = 0;  // forwarded so far, both ways
    };
    struct End {
        std::string node;
        ConnectionId carrier = 0;  // 0: it has been asked to open one
        std::uint64_t number = 0;
        std::uint64_t may_send = 0;
    };
    struct Relay {
        Key key;
        std::array<End, 2> ends;  // who asked, who was asked
        Instant began{};
    };
    struct Carrier {
        std::string node;
        std::map<std::uint64_t, std::pair<std::uint64_t, std::size_t>> pairs;  // by number: relay, and which end
        std::deque<std::uint64_t> ended;  // lately: what was on the way when they ended is nobody's fault
    };
    using Relays = std::map<std::uint64_t, Relay>;

    static Key key_of(const std::string& a, const std::string& b, std::uint64_t experiment);
    Status open(ConnectionId from, const RelayOpen& asked, Instant now);
    Status frame(Relay& relay, std::uint64_t id, std::size_t from, RelayFrame&& frame);
    Status credit(Relay& relay, std::uint64_t id, std::size_t from, const RelayCredit& credit);
    void join(Relay& relay, std::uint64_t id, ConnectionId carrier);
    /// Tells both ends but the one that already knows, and forgets it.
    void end(std::uint64_t id, const Error& why, std::optional<std::size_t> knows = {});
    void leave(const End& end);

    RelaySink sink_;
    std::map<Key, Permit> permits_;
    Relays relays_;
    std::map<ConnectionId, Carrier> carriers_;
    std::map<std::string, ConnectionId> newest_;
    std::uint64_t next_ = relay_number_bit;
};

}  // namespace causeway
