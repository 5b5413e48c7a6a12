// The link's rules without a socket: admission, sessions, take-over, heartbeats, silence, queues and the end.
//
// Frames come in, frames go out through a Port, events accumulate until taken. Time is an argument, so the whole of it
// runs in tests without a clock. The socket side calls flush() and tick() once per turn.
//
// threads  the link thread
#pragma once

#include <list>
#include <map>
#include <set>
#include <vector>

#include "wire/link.h"
#include "wire/relay_table.h"
#include "wire/secure_channel.h"

namespace causeway {

/// What the core asks of the sockets.
class LinkPort {
public:
    enum class Sent { yes, full, gone };
    virtual ~LinkPort() = default;
    /// Takes the frame only when the answer is `yes`.
    virtual Sent send(ConnectionId connection, Bytes& frame) = 0;
    /// Ends the connection now; nothing more comes from it.
    virtual void expel(ConnectionId connection) = 0;
    /// A number for a connection that has no socket: a stream that comes by relay.
    virtual ConnectionId new_connection() = 0;
};

// Strangers that have not begun TLS, at one time, and more for each session that there ever was at one time. ZeroMQ
// holds 5 KB for one that says nothing, and 35 KB once it has greeted.
constexpr std::size_t quiet_alone = 160;
constexpr std::size_t quiet_per_session = 4;

/// What handshakes begin with; a channel keeps the one it began with.
struct ChannelContexts {
    std::optional<ChannelContext> accepting{};
    std::optional<ChannelContext> connecting{};
    std::optional<ChannelContext> to_nodes{};  // a node's, for streams
};

/// What a link is of: a coordinator's takes sessions, a node's takes streams of those on its roster.
enum class LinkEnd { coordinator, node };

class LinkCore {
public:
    LinkCore(LinkLimits limits, ChannelContexts contexts, LinkPort& port, AdmitPeer admit = {},
             LinkEnd end = LinkEnd::coordinator);

    // ---- from the sockets
    /// A stranger has connected. False when there is no room: expel it.
    bool accept(ConnectionId connection, std::string address, Instant now);
    void dial(ConnectionId connection, const ConnectOptions& options, Instant now, std::int64_t unix_s);
    void receive(ConnectionId connection, ByteView frame, Instant now, std::int64_t unix_s);
    void lose(ConnectionId connection, Error why);

    // ---- commands
    void send(ConnectionId connection, Message message);
    void close(ConnectionId connection, Error why);
    void close_all(const Error& why);
    void set_pace(ConnectionId connection, Pace pace);
    /// For handshakes from now on; those of a node's streams from the next session on, for the coordinator puts the
    /// certificate that a session was opened with on the rosters of others.
    void use(ChannelContexts contexts);
    void allow_streams(std::vector<StreamPeer> peers);
    void allow_relays(std::vector<RelayPair> pairs) { relay_.allow(std::move(pairs), now_); }
    [[nodiscard]] std::vector<RelayUse> relay_use() const { return relay_.use(); }

    // ---- time
    void tick(Instant now);
    /// We did not look at the sockets for so long.
    void forgive(Duration stall);
    /// Seals and hands on what can go. Sealing is the last moment: priority is decided before it.
    void flush(Instant now);

    /// When tick() has something to do next, at the latest; frames and commands may bring it forward.
    [[nodiscard]] Instant due() const { return due_; }
    [[nodiscard]] bool empty() const { return peers_.empty(); }
    [[nodiscard]] std::size_t size() const { return peers_.size(); }
    [[nodiscard]] std::vector<LinkEvent> take_events() { return std::exchange(events_, {}); }
    /// Of all connections that speak for nodes, ended ones included.
    [[nodiscard]] Traffic traffic() const { return traffic_; }
    [[nodiscard]] Traffic stream_traffic() const { return stream_traffic_; }
    [[nodiscard]] Traffic bulk_traffic() const { return bulk_traffic_; }
    /// TLS is up and the first message has been accepted.
    [[nodiscard]] bool is_admitted(ConnectionId connection) const;

private:
    enum class Phase {
        handshaking,
        greeting,    // TLS is up: the first message is awaited; at a dialled stream the answer to ours
        contending,  // its identity has a live session, which is being probed
        open,
        closing,
    };
    struct Peer {
        ConnectionId id = 0;
        Phase phase = Phase::handshaking;
        ConnectionKind kind = ConnectionKind::control;
        bool accepted = false;
        bool announced = false;  // the owner has heard of it, and hears of its end
        std::string address;
        ConnectionId control = 0;   // bulk: whose
        std::uint64_t session = 0;  // dialled bulk: presented by Attach
        // A relayed stream: its frames travel as the payload of another connection's messages, as far as credits go.
        ConnectionId carrier = 0;
        std::uint64_t pair = 0;        // its number on the carrier
        std::size_t frame_offset = 0;  // of the first frame that waits: sent already
        std::uint64_t may_send = 0;    // bytes
        std::uint64_t may_take = 0;
        std::uint64_t owed = 0;              // taken in and not granted anew yet
        std::size_t relayed_bytes = 0;       // of a carrier: what waits in its outbox
        std::optional<StreamPeer> rostered;  // stream: who it is with; dialled: who it must be
        std::optional<SecureChannel> channel;
        // Lists, which take nothing while they are empty: three deques were 1.7 KB of a stranger that says nothing.
        std::list<Message> outbox;
        std::list<Bytes> frames;          // sealed: the one that did not fit, or a handshake's
        std::uint32_t sealed_chunks = 0;  // in the frames that wait
        std::uint32_t sent_chunks = 0;    // the owner has not heard of yet
        std::list<Message> held;          // contending: what came with the Hello
        Liveness liveness;
        Pace pace = Pace::idle;
        Instant deadline = never;  // of the handshake, the contention, the enrolment or the close
        Instant next_heartbeat = never;
        std::uint64_t heartbeats = 0;
        std::uint64_t asked = 0;  // the heartbeat whose answer is awaited; 0: none
        Instant asked_at{};
        std::size_t bad_messages = 0;
        bool finished = false;  // close_notify is sealed
        bool counted = false;   // its bytes are part of the traffic
        Error notice;           // the peer's last word, and when: if the connection ends now, it is the reason
        Instant notice_at = never;
        Error why;  // closing
        Traffic traffic;

        explicit Peer(Instant now) : liveness(now) {}
    };

    Peer* find(ConnectionId connection);
    Peer& control_of(Peer& peer);
    [[nodiscard]] std::size_t most_quiet() const;
    void make_room(const std::set<ConnectionId>& among, Instant now);
    Peer* live_control(const Identity& identity, ConnectionId except);

    void opened(Peer& peer, Instant now);
    void admit(Peer& peer, Instant now);
    void handle(Peer& peer, const SharedBytes& bytes, Instant now);
    void first_message(Peer& peer, Message message, Instant now);
    void greet(Peer& peer, Message hello, Instant now);
    void attach(Peer& peer, const Attach& attach, Instant now);
    const StreamPeer* on_roster(const Peer& peer, std::optional<std::uint64_t> experiment) const;
    bool greet_node(Peer& peer);
    void open_stream(Peer& peer, const StreamOpen& open, Instant now);
    void ask_for_stream(Peer& peer, Instant now);
    void answer_to_stream(Peer& peer, const Message& answer, Instant now);
    void queue_relayed(Peer& carrier, Message message);
    void open_relay(Peer& peer, Instant now);
    bool ask_for_relay(const std::string& node, const RelayOpen& open);
    void relay_message(Peer& carrier, Message message);
    bool dial_relayed(Peer& peer, const ConnectOptions& options);
    void accept_relayed(Peer& carrier, const RelayOpen& open);
    void take_relayed(Peer& peer, Peer& carrier, ByteView bytes);
    void flush_relayed(Peer& peer, Instant now);
    void end_relayed(const Peer& gone);
    void deliver(Peer& peer, Message message);
    void bad_message(Peer& peer, const Error& error);
    void heard(Peer& peer, Instant now);

    void settle_contentions(ConnectionId control, bool alive, Instant now);
    void close_bulk_of(ConnectionId control, const Error& why);
    void attach_to(Peer& peer, ConnectionId control);
    [[nodiscard]] std::size_t count_attached(ConnectionId control, ConnectionKind kind);
    void forget(const Peer& gone);
    void tick_peer(Peer& peer, Instant now);
    void tick_open(Peer& peer, Instant now);
    [[nodiscard]] Instant due_of(const Peer& peer) const;
    [[nodiscard]] Duration longest_silence(const Peer& peer) const;
    void be_due(Instant at) { due_ = std::min(due_, at); }
    void watch_session(Peer& peer, Instant now);
    void watch_stream(Peer& peer, Instant now);
    void measure(Peer& peer, Duration round_trip);
    void hear_heartbeat(Peer& peer, const Heartbeat& beat);
    void queue_heartbeat(Peer& peer, Heartbeat beat);
    void begin_close(Peer& peer, Error why, Instant now);
    void end(ConnectionId connection);
    Error cause(const Peer& peer, Error otherwise) const;
    void account(Peer& peer, std::size_t received, std::size_t sent);
    bool seal_next(Peer& peer, Instant now);
    Status seal_one(Peer& peer, Bytes& frame);
    void flush_peer(Peer& peer, Instant now);

    const LinkLimits limits_;
    ChannelContexts contexts_;
    LinkPort& port_;
    const AdmitPeer admit_;
    const LinkEnd end_;
    std::optional<ChannelContexts> renewed_;  // of a node, for the streams of its next session
    std::vector<StreamPeer> roster_;
    RelayTable relay_;                                                        // a coordinator's
    std::map<std::pair<ConnectionId, std::uint64_t>, ConnectionId> relayed_;  // a node's, by carrier and number
    std::int64_t unix_s_ = 0;                                                 // of the present turn
    std::map<ConnectionId, Peer> peers_;
    // What is asked of each newcomer, so that a thousand of them cost no thousand looks at a thousand.
    using Belongs = std::set<std::pair<ConnectionId, ConnectionId>>;  // to a session, who
    std::set<ConnectionId> strangers_;                                // accepted, and not known yet
    std::set<ConnectionId> quiet_;                                    // of these, who have not begun TLS
    std::map<std::string, std::set<ConnectionId>> sessions_;          // accepted control connections, by identity
    std::size_t most_known_ = 0;                                      // sessions and who has begun TLS, at one time
    Belongs attached_;                                                // bulk and relay connections
    Belongs contenders_;                                              // for a session's identity
    std::set<ConnectionId> unsent_;                                   // with something to seal or send
    std::vector<LinkEvent> events_;
    Traffic traffic_;
    Traffic stream_traffic_;
    Traffic bulk_traffic_;
    Instant due_{};
    Instant now_{};  // of the present turn, for commands
};

}  // namespace causeway
