// Which stream goes over which connection: the rules of wire/streams.h without a thread, a clock or a socket.
//
// A route is a peer in an experiment. It has messages that wait, at most one connection that we send on, and, while
// there is none, an attempt to get one: each address of the peer in turn, then the relay. Where the roster has no
// address of the peer, the peer has ours and connects; we wait for it a while, then use the relay. Routes are opened as
// soon as the roster has their peer, and stay open as long as it does.
//
// threads  one: the streams' own
#pragma once

#include <deque>
#include <map>
#include <string>

#include "wire/link.h"
#include "wire/liveness.h"
#include "wire/stream_assembly.h"
#include "wire/streams.h"

namespace causeway {

/// What the table asks of the link, and tells its owner.
struct StreamSink {
    std::function<ConnectionId(ConnectOptions)> connect;
    std::function<void(ConnectionId, Message)> send;
    std::function<void(ConnectionId, Error)> close;
    std::function<void(std::vector<StreamPeer>)> allow;
    StreamCallbacks owner;
    bool listens = true;  // others can connect to this node
};

class StreamTable {
public:
    StreamTable(StreamSink sink, StreamLimits limits) : sink_(std::move(sink)), limits_(limits) {}

    void roster(const Roster& roster, Instant now);
    void send(const std::string& node, StreamData message, Instant now);
    void cut_off(const std::string& node, const Error& why);
    void attach(ConnectionId control, Address coordinator, std::uint64_t session);
    void detach(ConnectionId control);
    void handle(LinkEvent&& event, Instant now);
    void tick(Instant now);
    [[nodiscard]] std::vector<std::string> routes() const;

private:
    struct Key {
        std::string node;
        std::uint64_t experiment = 0;
        auto operator<=>(const Key&) const = default;
    };
    struct Line {
        StreamPeer peer;
        std::vector<Address> addresses;
    };
    struct Connection {
        Key key;
        std::string address;
        bool accepted = false;
        ConnectionId carrier = 0;  // relayed
        bool heard = false;        // a message came over it
        StreamAssembly assembly;
        std::deque<std::size_t> in_link;  // sizes of what the link has not handed on yet
        std::size_t in_link_bytes = 0;
        Instant sent_at{};  // zero: never
        std::size_t piece = first_stream_bytes;  // of a message, at most
    };
    struct Route {
        ConnectionId current = 0;  // what we send on
        std::deque<StreamData> waiting;
        std::uint64_t waiting_bytes = 0;
        // ---- getting a connection
        ConnectionId dialling = 0;
        std::size_t next_address = 0;
        std::string failures;
        Instant began{};
        Instant wake_at = never;   // of the next try, or of the end of waiting for the peer
        bool wants_relay = false;  // as soon as the relay connection is there
        bool relaying = false;     // what is dialled goes by relay
        Instant ahead_at{};        // before that no attempt is made for which nothing waits
        Instant direct_at{};       // before that the relay is tried at once: no address answered lately
    };

    void opened(const PeerOpened& event, Instant now);
    void closed(const PeerClosed& event, Instant now);
    void attempt_failed(const Key& key, Route& route, const PeerClosed& event, Instant now);
    void data(ConnectionId id, StreamData&& message);
    void sent(const PeerSent& event, Instant now);
    void open_ahead(const Key& key, const Line& line, Instant now);
    void begin(const Key& key, Route& route, Instant now);
    void advance(const Key& key, Route& route, Instant now);
    void pump(Route& route, Instant now);
    void go_by_relay(const Key& key, Route& route, Instant now);
    void dial_by_relay(const Key& key, Route& route);
    void open_carrier(Instant now);
    void carrier_opened(Instant now);
    void carrier_closed(const Error& why);
    void give_up(const Key& key, Route& route, Error why);
    void no_way(const Key& key, Route& route, Error why);
    void close_connection(ConnectionId id, Error why);

    StreamSink sink_;
    const StreamLimits limits_;
    std::map<Key, Line> roster_;
    std::map<Key, Route> routes_;
    std::map<ConnectionId, Connection> connections_;  // open ones
    std::map<ConnectionId, Key> dialled_;             // attempts under way
    ConnectionId control_ = 0;                        // the session whose coordinator relays; 0: none
    Address coordinator_;
    ConnectionId carrier_ = 0;  // our relay connection; 0: none
    bool carrier_open_ = false;
    Instant carrier_used_{};
};

}  // namespace causeway
