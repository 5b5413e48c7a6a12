// Connections from their first byte to their last: handshake, sealing, heartbeats, the end.
#include "wire/link_core.h"

#include <algorithm>

#include "common/log.h"

namespace causeway {
namespace {

// "Say why, wait, then shut down: a bye sent right before is lost" (libzmq hands frames to another thread).
constexpr Duration farewell = std::chrono::milliseconds(100);
constexpr Duration notice_is_cause = std::chrono::seconds(3);
constexpr Duration longest_farewell = std::chrono::seconds(2);  // for a peer that does not read

constexpr std::size_t small_frame = 64 * 1024;
// Deadlines are looked at together: wake-ups cost, TLS does not (1,000 idle sessions 3 % of a core at 10 ms, 6 at 1).
constexpr Duration tick_interval = std::chrono::milliseconds(10);
constexpr Duration together = std::chrono::milliseconds(50);  // a heartbeat or a silence may be found so much later
constexpr std::uint32_t told_together = 2;                    // chunks sent: fewer than the engine's window

/// ZeroMQ's frame header.
std::size_t wire_size(std::size_t frame) {
    return frame + (frame < 256 ? 2 : 9);
}

}  // namespace

LinkCore::LinkCore(LinkLimits limits, ChannelContexts contexts, LinkPort& port, AdmitPeer admit, LinkEnd end)
    : limits_(limits),
      contexts_(std::move(contexts)),
      port_(port),
      admit_(std::move(admit)),
      end_(end),
      relay_({[this](ConnectionId carrier, Message message) {
                  if (auto* peer = find(carrier); peer && peer->phase == Phase::open) {
                      queue_relayed(*peer, std::move(message));
                  }
              },
              [this](const std::string& node, const RelayOpen& open) { return ask_for_relay(node, open); }}) {}

LinkCore::Peer* LinkCore::find(ConnectionId connection) {
    const auto found = peers_.find(connection);
    return found == peers_.end() ? nullptr : &found->second;
}

bool LinkCore::is_admitted(ConnectionId connection) const {
    const auto found = peers_.find(connection);
    return found != peers_.end() && found->second.announced;
}

// ---------------------------------------------------------------- from the sockets

/// What strangers make us hold follows what the federation itself comes to: members come back at once, each with a few
/// connections, and a session costs more than the strangers that may be in its place. Who has begun TLS counts as one,
/// so a first crowd of members makes its own room.
std::size_t LinkCore::most_quiet() const {
    return std::min(limits_.unauthenticated, quiet_alone + quiet_per_session * most_known_);
}

/// Strangers that say nothing must not keep out who does: the host with most of them loses the one it has had longest,
/// so a flood from one host costs nobody else a connection, and an honest handshake is over long before its turn.
void LinkCore::make_room(const std::set<ConnectionId>& among, Instant now) {
    const auto host = [](const Peer& peer) { return peer.address.substr(0, peer.address.rfind(':')); };
    std::map<std::string, std::pair<std::size_t, const Peer*>> strangers;  // by host: how many, and the first
    for (const auto id : among) {
        const auto& peer = *find(id);
        auto& [count, first] = strangers[host(peer)];
        ++count;
        first = first && first->deadline <= peer.deadline ? first : &peer;
    }
    const auto most = std::ranges::max_element(
        strangers, [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    if (most != strangers.end()) {
        now_ = now;
        log_debug("link", "making room: " + most->second.second->address + " has not said who it is");
        end(most->second.second->id);
    }
}

// Nothing is allocated for TLS before the stranger's first byte: a half-open connection costs a map entry here. What
// ZeroMQ holds for it is not ours to refuse, so there are few.
bool LinkCore::accept(ConnectionId connection, std::string address, Instant now) {
    now_ = now;
    if (contexts_.accepting && quiet_.size() >= most_quiet()) {
        make_room(quiet_, now);
    }
    if (contexts_.accepting && strangers_.size() >= limits_.unauthenticated) {
        make_room(strangers_, now);
    }
    if (!contexts_.accepting || peers_.size() >= limits_.connections || strangers_.size() >= limits_.unauthenticated) {
        log_warn("link", "refused " + address + ": too many connections");
        return false;
    }
    Peer peer(now);
    peer.id = connection;
    peer.accepted = true;
    peer.address = std::move(address);
    peer.deadline = now + limits_.handshake;
    be_due(peer.deadline);
    peers_.emplace(connection, std::move(peer));
    strangers_.insert(connection);
    quiet_.insert(connection);
    return true;
}

void LinkCore::dial(ConnectionId connection, const ConnectOptions& options, Instant now, std::int64_t unix_s) {
    now_ = now;
    Peer peer(now);
    peer.id = connection;
    peer.kind = options.kind;
    peer.announced = true;  // its owner waits for an answer in any case
    peer.address = options.to.text();
    peer.session = options.session;
    peer.rostered = options.peer;
    peer.deadline = now + options.within.value_or(limits_.handshake);
    be_due(peer.deadline);
    auto& kept = peers_.emplace(connection, std::move(peer)).first->second;
    attach_to(kept, options.control);
    const bool joins = options.kind == ConnectionKind::join;
    if (options.kind == ConnectionKind::control && renewed_) {
        contexts_.accepting = renewed_->accepting;
        contexts_.to_nodes = renewed_->to_nodes;
        renewed_.reset();
    }
    if (options.via != 0 && !dial_relayed(kept, options)) {
        return;
    }
    const auto& own = options.kind == ConnectionKind::stream ? contexts_.to_nodes : contexts_.connecting;
    if (!joins && !own) {
        begin_close(kept, {ErrorKind::refused, "no_certificate", "this node has no certificate: join first"}, now);
        return;
    }
    const auto context = joins ? ChannelContext::joining(options.authority_key) : Result<ChannelContext>(*own);
    kept.channel.emplace(*context, unix_s);
    Bytes hello;
    if (const auto started = kept.channel->start(hello); !started) {
        begin_close(kept, started.error(), now);
        return;
    }
    kept.frames.push_back(std::move(hello));
    unsent_.insert(connection);
}

// Messages before a failure count: a peer that says bye and ends has said bye.
void LinkCore::receive(ConnectionId connection, ByteView frame, Instant now, std::int64_t unix_s) {
    now_ = now;
    unix_s_ = unix_s;
    auto* peer = find(connection);
    if (!peer || peer->phase == Phase::closing) {
        return;
    }
    account(*peer, wire_size(frame.size()), 0);
    if (!peer->channel) {
        peer->channel.emplace(*contexts_.accepting, unix_s);
        quiet_.erase(connection);
        most_known_ = std::max(most_known_, sessions_.size() + strangers_.size() - quiet_.size());
    }
    Bytes answer;
    std::vector<SharedBytes> messages;
    const auto status = peer->channel->receive(frame, answer, messages);
    if (!answer.empty()) {
        peer->frames.push_back(std::move(answer));
        unsent_.insert(connection);
    }
    if (peer->phase == Phase::handshaking && peer->channel->is_open()) {
        opened(*peer, now);
    }
    heard(*peer, now);
    for (const auto& message : messages) {
        if (peer->phase == Phase::closing) {
            return;
        }
        handle(*peer, message, now);
    }
    if (!status && peer->phase != Phase::closing) {
        begin_close(*peer, cause(*peer, status.error()), now);
    }
}

void LinkCore::lose(ConnectionId connection, Error why) {
    auto* peer = find(connection);
    if (!peer) {
        return;
    }
    if (peer->phase != Phase::closing) {
        peer->why = cause(*peer, std::move(why));
        log_info("link", "lost " + peer->address + ": " + peer->why.code);
    }
    end(connection);
}

// ---------------------------------------------------------------- commands

void LinkCore::send(ConnectionId connection, Message message) {
    auto* peer = find(connection);
    if (!peer || peer->phase != Phase::open) {
        return;
    }
    if (peer->outbox.size() >= limits_.queued_messages) {
        begin_close(*peer, {ErrorKind::overloaded, "slow_peer", "too many messages wait for this peer"}, now_);
        return;
    }
    peer->outbox.push_back(std::move(message));
    unsent_.insert(connection);
}

void LinkCore::close(ConnectionId connection, Error why) {
    if (auto* peer = find(connection); peer && peer->phase != Phase::closing) {
        // Who is refused gets nothing more: its transfers do not outlive the farewell.
        if (why.kind == ErrorKind::refused && peer->kind == ConnectionKind::control) {
            close_bulk_of(connection, why);
        }
        begin_close(*peer, std::move(why), now_);
    }
}

void LinkCore::use(ChannelContexts contexts) {
    if (end_ == LinkEnd::coordinator) {
        contexts_ = std::move(contexts);
        return;
    }
    contexts_.connecting = contexts.connecting;
    renewed_ = std::move(contexts);
}

void LinkCore::close_bulk_of(ConnectionId control, const Error& why) {
    for (auto at = attached_.lower_bound({control, 0}); at != attached_.end() && at->first == control; ++at) {
        if (auto* other = find(at->second); other->phase != Phase::closing) {
            begin_close(*other, why, now_);
        }
    }
}

void LinkCore::close_all(const Error& why) {
    for (auto& entry : peers_) {
        if (entry.second.phase != Phase::closing) {
            begin_close(entry.second, why, now_);
        }
    }
}

// Both ends are told by their owners; while they disagree the wider bound of the observed gaps holds.
void LinkCore::set_pace(ConnectionId connection, Pace pace) {
    if (auto* peer = find(connection)) {
        peer->pace = pace;
        peer->liveness.set_pace(pace, now_);
        peer->next_heartbeat = std::min(peer->next_heartbeat, now_ + heartbeat_interval(pace));
        be_due(due_of(*peer));
    }
}

// ---------------------------------------------------------------- time

/// When time alone changes something of it.
Instant LinkCore::due_of(const Peer& peer) const {
    const bool watched =
        peer.phase == Phase::open && (peer.kind == ConnectionKind::control || peer.kind == ConnectionKind::stream);
    if (!watched) {
        return peer.deadline;
    }
    return std::min({peer.deadline, peer.next_heartbeat, peer.liveness.silent_at(longest_silence(peer))});
}

// Deadlines of every phase in one place. cost: one pass over the connections, and none before one is due. Those of open
// connections are looked at together: heartbeats of a thousand cost twenty passes a second, not five hundred.
void LinkCore::tick(Instant now) {
    now_ = now;
    if (now < due_) {
        return;
    }
    std::vector<ConnectionId> due;
    for (const auto& [id, peer] : peers_) {
        if (due_of(peer) <= now) {
            due.push_back(id);
        }
    }
    for (const auto id : due) {
        if (auto* peer = find(id)) {  // an earlier one's end may have taken this one along
            tick_peer(*peer, now);
        }
    }
    due_ = never;
    for (const auto& [id, peer] : peers_) {
        const bool open = peer.phase == Phase::open;
        be_due(open ? std::max(due_of(peer), now + together) : due_of(peer));
    }
    if (!relay_.empty()) {
        relay_.tick(now);
        be_due(now + together);
    }
    due_ = std::max(due_, now + tick_interval);
}

void LinkCore::tick_peer(Peer& peer, Instant now) {
    if (peer.phase == Phase::open) {
        tick_open(peer, now);
    } else if (now < peer.deadline) {
        return;
    } else if (peer.phase == Phase::contending) {
        settle_contentions(peer.control, false, now);
    } else if (peer.phase == Phase::closing) {
        end(peer.id);
    } else {
        begin_close(peer, {ErrorKind::timed_out, "handshake_timeout", "no session within the time for it"}, now);
    }
}

void LinkCore::forgive(Duration stall) {
    for (auto& entry : peers_) {
        entry.second.liveness.forgive(stall);
        const bool expires = entry.second.phase == Phase::open && entry.second.kind == ConnectionKind::stream;
        if (entry.second.deadline != never && entry.second.phase != Phase::closing && !expires) {
            entry.second.deadline += stall;
        }
    }
}

// ---------------------------------------------------------------- the end

/// A peer that has just told us why is believed before a bare end of the stream.
Error LinkCore::cause(const Peer& peer, Error otherwise) const {
    const bool ended = otherwise.kind == ErrorKind::disconnected;
    return ended && peer.notice_at != never && now_ - peer.notice_at < notice_is_cause ? peer.notice
                                                                                       : std::move(otherwise);
}

/// Says why where the channel allows it; end() follows when it is said, or in two seconds.
void LinkCore::begin_close(Peer& peer, Error why, Instant now) {
    log_line(why.code == "bye" ? LogLevel::debug : LogLevel::info, "link",
             "closing " + peer.address + ": " + why.code + ": " + why.message);
    const bool sayable = peer.channel && peer.channel->is_open();
    if (sayable && why.code == "bye") {
        peer.outbox.push_back(Bye{why.message});
    } else if (sayable && why.code != "closed") {
        peer.outbox.push_back(ErrorNotice{why.kind, why.code, why.message});
    } else {
        peer.outbox.clear();
    }
    peer.phase = Phase::closing;
    peer.held.clear();
    peer.finished = false;
    // Nothing to say: what is left is at most an alert.
    peer.deadline = now + (sayable ? longest_farewell : peer.frames.empty() ? Duration(0) : farewell);
    be_due(peer.deadline);
    peer.why = std::move(why);
    unsent_.insert(peer.id);
}

/// The last of a connection. The owner hears of it if it ever heard of it; a session takes its bulk connections along.
void LinkCore::end(ConnectionId connection) {
    const auto found = peers_.find(connection);
    if (found == peers_.end()) {
        return;
    }
    const Peer peer = std::move(found->second);
    peers_.erase(found);
    forget(peer);
    if (peer.carrier == 0) {
        port_.expel(connection);
    }
    if (peer.announced) {
        events_.emplace_back(PeerClosed{connection, peer.kind, peer.why, peer.traffic});
    }
    end_relayed(peer);
    if (peer.kind != ConnectionKind::control || !peer.announced) {
        return;
    }
    settle_contentions(connection, false, now_);
    close_bulk_of(connection, {ErrorKind::disconnected, "session_ended", "its session has ended"});
}

// ---------------------------------------------------------------- sealing

/// The next message onto the frame. One that is too long for anybody is left out; its asker is told.
Status LinkCore::seal_one(Peer& peer, Bytes& frame) {
    const Message message = std::move(peer.outbox.front());
    peer.outbox.pop_front();
    if (const auto* relayed = std::get_if<RelayFrame>(&message)) {
        peer.relayed_bytes -= std::min(peer.relayed_bytes, relayed->payload.size());
    }
    auto header = encode_header(message);
    const auto payload = payload_of(message);
    if (!payload && header.size() > max_header_bytes) {
        log_error("link", std::string(message_name(message)) + " to " + peer.address + " is too long and left out");
        const auto* reply = std::get_if<Reply>(&message);
        if (!reply) {
            return {};
        }
        header = encode_header(
            Reply{reply->id, true, "",
                  ErrorNotice{ErrorKind::overloaded, "reply_too_long", "the answer is over 256 KiB: ask for less"}});
    }
    const bool paced = peer.kind == ConnectionKind::bulk || peer.kind == ConnectionKind::stream;
    peer.sealed_chunks += paced && payload ? 1 : 0;
    return peer.channel->send(header, payload.value_or(ByteView()), frame);
}

/// Makes a frame: a chunk, or as many small messages as fit 64 KiB (frames have no meaning, and each costs a hand-over
/// between threads), or the end of the stream. Of a stream only until a TLS record is full: a frame is heard when it
/// has come whole, and on a slow line a batch would wait for those that were sent after it. False: there is nothing.
bool LinkCore::seal_next(Peer& peer, Instant now) {
    if (!peer.channel || !peer.channel->is_open()) {
        return false;
    }
    Bytes frame;
    const bool packs = peer.kind == ConnectionKind::stream || peer.kind == ConnectionKind::relay;
    const auto enough = packs ? least_stream_bytes : small_frame;
    while (!peer.outbox.empty() && frame.size() < enough) {
        if (!frame.empty() && !packs && payload_of(peer.outbox.front())) {
            break;
        }
        if (const auto sealed = seal_one(peer, frame); !sealed) {
            begin_close(peer, sealed.error(), now);
            return false;
        }
    }
    if (frame.empty() && peer.phase == Phase::closing && !peer.finished) {
        peer.channel->finish(frame);
        peer.finished = true;
        peer.deadline = std::min(peer.deadline, now + farewell);
        be_due(peer.deadline);
    }
    if (frame.empty()) {
        return false;
    }
    peer.frames.push_back(std::move(frame));
    return true;
}

/// Sends until there is nothing more or the socket is full; then one sealed frame waits here.
void LinkCore::flush_peer(Peer& peer, Instant now) {
    while (!peer.frames.empty() || seal_next(peer, now)) {
        const auto size = peer.frames.front().size();
        switch (port_.send(peer.id, peer.frames.front())) {
            case LinkPort::Sent::full:
                return;
            case LinkPort::Sent::gone:
                lose(peer.id, {ErrorKind::disconnected, "connection_lost", "the connection is gone"});
                return;
            case LinkPort::Sent::yes:
                break;
        }
        peer.frames.pop_front();
        account(peer, 0, wire_size(size));
        peer.sent_chunks += peer.frames.empty() ? std::exchange(peer.sealed_chunks, 0) : 0;
        if (peer.sent_chunks >= told_together) {
            events_.emplace_back(PeerSent{peer.id, std::exchange(peer.sent_chunks, 0)});
        }
    }
    unsent_.erase(peer.id);
}

void LinkCore::flush(Instant now) {
    now_ = now;
    const auto unsent = [this] { return std::vector<ConnectionId>(unsent_.begin(), unsent_.end()); };
    if (!relayed_.empty()) {  // first what goes onto carriers
        for (const auto id : unsent()) {
            if (auto* peer = find(id); peer && peer->carrier != 0) {
                flush_relayed(*peer, now);
            }
        }
    }
    for (const auto id : unsent()) {
        if (auto* peer = find(id); peer && peer->carrier == 0) {
            flush_peer(*peer, now);
        }
    }
}

}  // namespace causeway
