// What a connection is, by its first message; and who keeps an identity that two connections claim.
//
// Take-over: a second control connection of one identity makes the link ask the first for a
// heartbeat. A frame from it within a second keeps it, and the newcomer is refused; otherwise the newcomer takes over.
// Operators are exempt: their commands are short, and two may run at once.
#include "wire/link_core.h"

#include <algorithm>

#include "common/log.h"

namespace causeway {
namespace {

constexpr std::size_t max_held_messages = 16;  // of a newcomer that is not admitted yet

bool belongs_on(ConnectionKind kind, const Message& message) {
    if (std::holds_alternative<ErrorNotice>(message) || std::holds_alternative<Bye>(message)) {
        return true;
    }
    const bool join = std::holds_alternative<JoinRequest>(message) || std::holds_alternative<JoinReply>(message);
    const bool bulk = std::holds_alternative<Pull>(message) || std::holds_alternative<Credit>(message) ||
                      std::holds_alternative<Chunk>(message) || std::holds_alternative<TransferEnd>(message);
    const bool relay = std::holds_alternative<RelayFrame>(message) || std::holds_alternative<RelayCredit>(message) ||
                       std::holds_alternative<RelayEnd>(message);
    const bool relay_open = std::holds_alternative<RelayOpen>(message);
    const bool stream = std::holds_alternative<StreamData>(message);
    switch (kind) {
        case ConnectionKind::join:
            return join;
        case ConnectionKind::bulk:
            return bulk;
        case ConnectionKind::stream:
            return stream;
        case ConnectionKind::relay:
            return relay || relay_open;
        case ConnectionKind::control:
            return !join && !bulk && !relay && !stream && !std::holds_alternative<Attach>(message) &&
                   !std::holds_alternative<StreamOpen>(message);
    }
    return false;
}

std::string host_of(const std::string& address) {
    return address.substr(0, address.rfind(':'));
}

}  // namespace

LinkCore::Peer& LinkCore::control_of(Peer& peer) {
    const bool has = peer.kind == ConnectionKind::bulk || peer.kind == ConnectionKind::relay;
    auto* control = has ? find(peer.control) : nullptr;
    return control ? *control : peer;
}

LinkCore::Peer* LinkCore::live_control(const Identity& identity, ConnectionId except) {
    const auto known = sessions_.find(identity.uri());
    if (known == sessions_.end()) {
        return nullptr;
    }
    for (const auto id : known->second) {
        auto* peer = find(id);
        if (id != except && (peer->phase == Phase::open || peer->phase == Phase::contending)) {
            return peer;
        }
    }
    return nullptr;
}

/// A bulk or relay connection belongs to a session, whose end takes it along; others belong to nobody.
void LinkCore::attach_to(Peer& peer, ConnectionId control) {
    peer.control = control;
    if (peer.kind == ConnectionKind::bulk || peer.kind == ConnectionKind::relay) {
        attached_.emplace(control, peer.id);
    }
}

std::size_t LinkCore::count_attached(ConnectionId control, ConnectionKind kind) {
    std::size_t count = 0;
    for (auto at = attached_.lower_bound({control, 0}); at != attached_.end() && at->first == control; ++at) {
        count += find(at->second)->kind == kind ? 1 : 0;
    }
    return count;
}

/// After its end, whatever it was.
void LinkCore::forget(const Peer& gone) {
    unsent_.erase(gone.id);
    strangers_.erase(gone.id);
    quiet_.erase(gone.id);
    attached_.erase({gone.control, gone.id});
    contenders_.erase({gone.control, gone.id});
    const auto* who = gone.channel && gone.channel->peer() ? &*gone.channel->peer() : nullptr;
    const auto own = who ? sessions_.find(who->identity.uri()) : sessions_.end();
    if (own != sessions_.end() && own->second.erase(gone.id) != 0 && own->second.empty()) {
        sessions_.erase(own);
    }
}

/// TLS is up. A dialled connection is usable now; an accepted one says first what it is.
void LinkCore::opened(Peer& peer, Instant now) {
    const auto& identity = peer.channel->peer();
    peer.counted = identity && identity->identity.role != Role::operator_ && peer.kind != ConnectionKind::join &&
                   peer.carrier == 0;
    if (peer.counted) {  // the handshake's bytes were bytes too
        traffic_.received += peer.traffic.received;
        traffic_.sent += peer.traffic.sent;
    }
    if (peer.accepted && peer.channel->protocol() == ChannelProtocol::session) {
        // All kinds alike, before anything it says is looked at.
        if (end_ == LinkEnd::node && !greet_node(peer)) {
            return;
        }
        if (const auto allowed = admit_ ? admit_(*identity, peer.address) : Status(); !allowed) {
            begin_close(peer, allowed.error(), now);
            return;
        }
        peer.phase = Phase::greeting;
        return;
    }
    if (peer.accepted) {
        peer.kind = ConnectionKind::join;
        const auto joins = std::ranges::count_if(peers_, [&](const auto& entry) {
            return entry.second.accepted && entry.second.kind == ConnectionKind::join &&
                   host_of(entry.second.address) == host_of(peer.address);
        });
        if (static_cast<std::size_t>(joins) > limits_.joins_per_host) {
            begin_close(peer, {ErrorKind::overloaded, "too_many_joins", "too many nodes join from this address"}, now);
            return;
        }
    }
    if (!peer.accepted && peer.kind == ConnectionKind::bulk) {
        peer.outbox.push_back(Attach{peer.session});
        unsent_.insert(peer.id);
    }
    if (!peer.accepted && (peer.kind == ConnectionKind::stream || peer.kind == ConnectionKind::relay)) {
        ask_for_stream(peer, now);
        return;
    }
    admit(peer, now);
}

void LinkCore::admit(Peer& peer, Instant now) {
    peer.phase = Phase::open;
    peer.announced = true;
    strangers_.erase(peer.id);
    if (peer.kind == ConnectionKind::stream) {
        peer.deadline = peer.rostered->expires;
    } else if (peer.kind != ConnectionKind::join) {
        peer.deadline = never;  // an enrolment keeps its own
    }
    if (peer.kind == ConnectionKind::stream) {
        peer.pace = Pace::leased;
        peer.liveness = Liveness(now, Pace::leased);
    } else {
        peer.liveness = Liveness(now);
        peer.liveness.set_pace(peer.pace, now);
    }
    peer.next_heartbeat = now + heartbeat_interval(peer.pace);
    be_due(due_of(peer));
    events_.emplace_back(PeerOpened{peer.id, peer.kind, peer.channel->peer(), peer.address,
                                    &control_of(peer) == &peer ? 0 : peer.control,
                                    peer.rostered ? peer.rostered->experiment : 0, peer.carrier});
    for (auto& message : std::exchange(peer.held, {})) {
        deliver(peer, std::move(message));
    }
}

void LinkCore::handle(Peer& peer, const SharedBytes& bytes, Instant now) {
    auto message = decode_received(bytes);
    if (!message) {
        bad_message(peer, message.error());
        return;
    }
    switch (peer.phase) {
        case Phase::greeting:
            if (std::holds_alternative<Heartbeat>(*message)) {
                return;  // the peer's link beats by itself while its owner prepares the hello
            }
            first_message(peer, std::move(*message), now);
            return;
        case Phase::contending:
            if (peer.held.size() < max_held_messages && !std::holds_alternative<Heartbeat>(*message)) {
                peer.held.push_back(std::move(*message));
            }
            return;
        case Phase::open:
            deliver(peer, std::move(*message));
            return;
        case Phase::handshaking:
        case Phase::closing:
            return;
    }
}

void LinkCore::first_message(Peer& peer, Message message, Instant now) {
    if (!peer.accepted) {
        answer_to_stream(peer, message, now);
        return;
    }
    const auto* open = std::get_if<StreamOpen>(&message);
    if (end_ == LinkEnd::node) {
        if (open) {
            open_stream(peer, *open, now);
        } else {
            begin_close(peer,
                        {ErrorKind::refused, "not_a_coordinator",
                         "this is a node, which takes streams of other nodes only: connect to its coordinator"},
                        now);
        }
    } else if (open) {
        open_relay(peer, now);
    } else if (const auto* claim = std::get_if<Attach>(&message)) {
        attach(peer, *claim, now);
    } else if (std::holds_alternative<Hello>(message)) {
        greet(peer, std::move(message), now);
    } else {
        begin_close(peer,
                    {ErrorKind::invalid, "hello_expected",
                     "the first message must be hello or attach, not " + std::string(message_name(message))},
                    now);
    }
}

void LinkCore::greet(Peer& peer, Message hello, Instant now) {
    const auto& identity = peer.channel->peer()->identity;
    peer.kind = ConnectionKind::control;
    sessions_[identity.uri()].insert(peer.id);
    peer.held.push_back(std::move(hello));
    auto* first = identity.role == Role::operator_ ? nullptr : live_control(identity, peer.id);
    if (!first) {
        admit(peer, now);
        return;
    }
    if (first->phase == Phase::contending) {
        begin_close(peer, {ErrorKind::refused, "identity_in_use", "another start of this node is just being admitted"},
                    now);
        return;
    }
    peer.phase = Phase::contending;
    peer.control = first->id;
    contenders_.emplace(first->id, peer.id);
    peer.deadline = now + limits_.probe;
    be_due(peer.deadline);
    queue_heartbeat(*first, {.asks = true});
}

/// Ends every contention for the session `control`: it is alive, or it is not.
void LinkCore::settle_contentions(ConnectionId control, bool alive, Instant now) {
    for (auto at = contenders_.lower_bound({control, 0}); at != contenders_.end() && at->first == control;) {
        auto& peer = *find(at->second);
        at = contenders_.erase(at);
        if (peer.phase != Phase::contending) {
            continue;  // it is being closed
        }
        peer.control = 0;
        if (alive) {
            begin_close(peer,
                        {ErrorKind::refused, "identity_in_use",
                         "a node with this identity is connected and answers: stop it first"},
                        now);
            continue;
        }
        if (auto* old = find(control); old && old->phase != Phase::closing) {
            begin_close(*old, {ErrorKind::disconnected, "replaced", "a newer start of this node has taken over"}, now);
        }
        admit(peer, now);
    }
}

void LinkCore::attach(Peer& peer, const Attach& attach, Instant now) {
    const auto* control = find(attach.session);
    const bool known = control && control->phase == Phase::open && control->kind == ConnectionKind::control &&
                       control->accepted && control->channel->peer()->identity == peer.channel->peer()->identity;
    const auto siblings = count_attached(attach.session, ConnectionKind::bulk);
    if (!known) {
        begin_close(peer, {ErrorKind::refused, "unknown_session", "no live session of this identity has that number"},
                    now);
    } else if (siblings >= limits_.bulk_per_session) {
        begin_close(peer, {ErrorKind::overloaded, "too_many_connections", "this session has enough connections"}, now);
    } else {
        peer.kind = ConnectionKind::bulk;
        attach_to(peer, attach.session);
        admit(peer, now);
    }
}

/// To the owner, except what the link answers by itself.
void LinkCore::deliver(Peer& peer, Message message) {
    const bool beats = peer.kind == ConnectionKind::control || peer.kind == ConnectionKind::stream;
    if (const auto* heartbeat = std::get_if<Heartbeat>(&message); heartbeat && beats) {
        hear_heartbeat(peer, *heartbeat);
        return;
    }
    const bool astray = end_ == LinkEnd::coordinator && std::holds_alternative<RelayOpen>(message) &&
                        peer.kind == ConnectionKind::control;
    if (!belongs_on(peer.kind, message) || astray) {
        bad_message(peer, {ErrorKind::invalid, "wrong_connection",
                           std::string(message_name(message)) + " does not belong on this connection"});
        return;
    }
    if (const auto* notice = std::get_if<ErrorNotice>(&message)) {
        peer.notice = {notice->kind, notice->code, notice->message};
        peer.notice_at = now_;
    } else if (const auto* farewell = std::get_if<Bye>(&message)) {
        peer.notice = bye(farewell->reason);
        peer.notice_at = now_;
    }
    const bool spoken = std::holds_alternative<ErrorNotice>(message) || std::holds_alternative<Bye>(message);
    if (peer.kind == ConnectionKind::relay && !spoken) {
        relay_message(peer, std::move(message));
        return;
    }
    events_.emplace_back(PeerMessage{peer.id, std::move(message)});
}

/// Answered with what is wrong and counted: one bad message of an admitted peer harms nobody.
void LinkCore::bad_message(Peer& peer, const Error& error) {
    log_info("link", "bad message from " + peer.address + ": " + error.message);
    if (peer.phase != Phase::open || ++peer.bad_messages > limits_.bad_messages) {
        begin_close(peer, error, now_);
        return;
    }
    send(peer.id, ErrorNotice{error.kind, error.code, error.message});
}

}  // namespace causeway
