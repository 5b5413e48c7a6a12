// The link: one thread that owns the sockets and the TLS sessions of a process.
//
// Other threads put commands in and take events out through bounded queues; values are owned, nothing is shared. A
// connection is one TCP connection, one TLS session, through one ZeroMQ socket of the connecting side; losing it ends
// it (never ZeroMQ's silent reconnect). An accepted control connection is a session, and its number is the session's.
// The link answers heartbeats, watches for silence, decides who is admitted and expels; it never blocks on its owners:
// when they do not take events it stops reading from the sockets.
//
// wire/link_core.h holds the rules without a socket, wire/listener.cpp and wire/dialer.cpp the sockets.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/queue.h"
#include "wire/address.h"
#include "wire/identity.h"
#include "wire/liveness.h"
#include "wire/message.h"

namespace causeway {

using ConnectionId = std::uint64_t;  // rises; unique for the life of a link; 0 is none

/// A stream connection is between two nodes; a relay connection, from a node to the coordinator, carries such streams
/// for nodes that cannot reach each other.
enum class ConnectionKind { control, bulk, join, stream, relay };

/// At the socket, after encryption, ZeroMQ's frame headers included.
struct Traffic {
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
};

// ---------------------------------------------------------------- events
/// Admitted. At the accepting side the first message (Hello, Attach) has been seen; a Hello follows as PeerMessage.
struct PeerOpened {
    ConnectionId connection = 0;
    ConnectionKind kind = ConnectionKind::control;
    std::optional<PeerIdentity> peer;  // none: a node that enrols
    std::string address;
    ConnectionId control = 0;      // of a bulk connection: the control connection it belongs to
    std::uint64_t experiment = 0;  // of a stream
    ConnectionId carrier = 0;      // of a relayed stream: the relay connection that it goes over
};
struct PeerMessage {
    ConnectionId connection = 0;
    Message message;
};
/// Gone, for whatever reason. A connecting side hears it also of attempts that failed.
struct PeerClosed {
    ConnectionId connection = 0;
    ConnectionKind kind = ConnectionKind::control;
    Error why;
    Traffic traffic;
};
/// No sign of life within the bound (wire/liveness.h), on control connections; the connection stays for a while.
struct PeerSilent {
    ConnectionId connection = 0;
    Duration silence{};
};
struct PeerHeard {
    ConnectionId connection = 0;
};
/// So many chunks of a bulk connection, or pieces of a stream, have been handed to the socket: their owner's pacing.
/// Told in pairs, so one may be sent and not told: half the hand-overs between threads.
struct PeerSent {
    ConnectionId connection = 0;
    std::uint32_t chunks = 0;
};
/// A heartbeat's answer took so long, or has not come for so long: a stream's at each, a session's now and then.
struct PeerMeasured {
    ConnectionId connection = 0;
    Duration round_trip{};
};
/// The answer to Link::listen(): what had come by then has been told before this.
struct PeersRead {
    ConnectionId connection = 0;  // none: it is about all of them
};
using LinkEvent =
    std::variant<PeerOpened, PeerMessage, PeerClosed, PeerSilent, PeerHeard, PeerSent, PeerMeasured, PeersRead>;
using LinkEvents = BoundedQueue<LinkEvent>;

// ---------------------------------------------------------------- options
struct LinkLimits {
    std::size_t connections = 4096;
    std::size_t unauthenticated = 1024;  // each costs 57 KB once it speaks; a restart brings all members at once
    std::size_t joins_per_host = 16;
    std::size_t bulk_per_session = 4;
    std::size_t streams_per_peer = 4;    // accepted from one node for one experiment: restarts leave dying ones
    std::size_t relays_per_session = 2;  // a dying one beside its successor
    std::size_t queued_messages = 2048;  // waiting to be sealed, per connection; more closes it
    std::size_t bad_messages = 8;        // refused and answered; one more closes the connection
    Duration handshake = std::chrono::seconds(10);  // until the first message; an enrolment's whole life
    Duration probe = std::chrono::seconds(1);       // the take-over rule
    Duration dead = std::chrono::seconds(15);       // a silent connection is closed then, or after twice its bound
};

/// Whether a peer with a good certificate may have a connection, asked once per accepted connection before its first
/// message. threads: called on the link thread, which it must not hold up. errors: said to the peer, then closed
using AdmitPeer = std::function<Status(const PeerIdentity& peer, const std::string& address)>;

struct LinkOptions {
    std::optional<Credentials> credentials;  // needed by all but a joining node
    std::optional<Address> listen;           // a coordinator's for all, a node's for streams; port 0: any free one
    LinkLimits limits;
    std::function<std::int64_t()> unix_now = wall_clock_unix_s;  // judges certificates
    AdmitPeer admit{};                                           // none: whoever the authority vouches for
};

/// Where events go: bulk connections' to the transfer engine's queue, streams' to their own, all others' to `control`.
struct LinkQueues {
    std::shared_ptr<LinkEvents> control;
    std::shared_ptr<LinkEvents> bulk;  // none: bulk connections are refused
    /// In place of `control`, for an owner whose queue holds more than a link's events. False when there is no room:
    /// the event is untouched then, and offered again. threads: called on the link thread, which it must not hold up
    std::function<bool(LinkEvent&)> take_control{};
    std::shared_ptr<LinkEvents> streams{};  // none: a node that has no streams
};

/// For `take_control`: into a queue of anything that an event can be put into.
template <class Queue, class Item>
bool offer(Queue& queue, LinkEvent& event) {
    Item item(std::move(event));
    if (queue.try_push(item)) {
        return true;
    }
    event = std::move(std::get<LinkEvent>(item));
    return false;
}

/// Another node that this one may exchange streams with, for one experiment, until then: a line of the roster. Exactly
/// this certificate is meant, at both ends.
struct StreamPeer {
    std::string node;
    Role role = Role::client;
    Digest fingerprint;
    std::uint64_t experiment = 0;
    Instant expires{};
};

/// Two nodes whose frames the coordinator forwards, for one experiment, until then, and how many bytes of them.
struct RelayPair {
    std::string first;
    std::string second;
    std::uint64_t experiment = 0;
    Instant expires{};
    std::uint64_t quota = std::uint64_t{1} << 40;  // both ways together
};
/// What has been forwarded of a pair that is allowed: bytes of the two nodes' own TLS session, both ways.
struct RelayUse {
    std::string first;
    std::string second;
    std::uint64_t experiment = 0;
    std::uint64_t bytes = 0;
};

struct AddressedMessage {
    ConnectionId connection = 0;
    Message message;
};

struct ConnectOptions {
    Address to;
    ConnectionKind kind = ConnectionKind::control;
    ConnectionId control = 0;          // bulk: our control connection, whose peer it speaks for
    std::uint64_t session = 0;         // bulk: as Welcome said; presented by Attach
    Digest authority_key{};            // join: what the token says of the CA
    ConnectionId via = 0;              // stream: not to `to`, but over our relay connection
    std::optional<StreamPeer> peer{};  // stream: exactly whom
    std::optional<Duration> within{};  // until it is open; none: limits.handshake
};

/// threads  thread-safe
class Link {
public:
    /// Binds, then starts the thread.
    ///
    /// errors  io `port_in_use` or `cannot_listen`; corrupt: credentials
    static Result<std::unique_ptr<Link>> start(LinkOptions options, LinkQueues queues);
    /// Closes every connection with a Bye and waits for the thread (about 0.2 s).
    ~Link();
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    /// The port that is listened on; 0 when none.
    [[nodiscard]] std::uint16_t port() const;

    /// Begins an attempt; PeerOpened or PeerClosed answers, within `limits.handshake`.
    ConnectionId connect(ConnectOptions options);
    /// In order per connection; dropped when it is gone (PeerClosed says so).
    void send(ConnectionId connection, Message message);
    /// Several at once, in order: what goes to one peer shares a frame, and the thread is woken once for all.
    void send(std::vector<AddressedMessage> messages);
    /// Says why (an ErrorNotice, or a Bye when `why.code` is "bye"), then closes; PeerClosed follows. When a session is
    /// closed as `refused`, its bulk connections are closed with it, not after it.
    void close(ConnectionId connection, Error why);
    void set_pace(ConnectionId connection, Pace pace);
    /// Who may hold streams with this node, in place of all said before; those of others are closed, and each
    /// when its line expires.
    void allow_streams(std::vector<StreamPeer> peers);
    /// A coordinator's: whose streams are forwarded, in place of all said before. Call it whenever rosters are sent.
    void allow_relays(std::vector<RelayPair> pairs);
    /// Asks for PeersRead, in the queue of control events: who has a deadline to keep hears everybody first. One
    /// question at a time.
    void listen();
    /// One line for each pair that is allowed. cost: waits for a turn of the link thread. Not from that thread
    [[nodiscard]] std::vector<RelayUse> relay_use() const;
    /// A renewed certificate: shown in every handshake from now on. Connections there are go on as they are.
    ///
    /// errors  corrupt: the credentials cannot be used; nothing has changed
    Status use(const Credentials& credentials);

    /// All traffic since the start; operators' and enrolments' is left out.
    [[nodiscard]] Traffic traffic() const;
    /// The part of it that went over stream and relay connections.
    [[nodiscard]] Traffic stream_traffic() const;
    /// The part of it that went over bulk connections, from their first message on.
    [[nodiscard]] Traffic bulk_traffic() const;

    struct State;
    /// For start() only.
    explicit Link(std::unique_ptr<State> state);

private:
    std::unique_ptr<State> state_;
};

/// A planned end, for Link::close.
inline Error bye(std::string reason) {
    return {ErrorKind::disconnected, "bye", std::move(reason)};
}

}  // namespace causeway
