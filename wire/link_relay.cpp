// Streams through the coordinator: at a node a stream whose frames travel inside another connection, at the coordinator
// the hand-over to the table that forwards them.
//
// A relayed stream is a peer like any other - the same TLS, roster and messages - but instead of a socket it has a
// carrier, our relay connection, and credits, for the coordinator keeps nothing that the receiver has not asked for.
// Thread: the link thread.
#include <algorithm>

#include "common/log.h"
#include "wire/link_core.h"

namespace causeway {
namespace {

constexpr std::uint64_t grant_step = relay_window / 4;
constexpr std::uint64_t most_credit = std::uint64_t{1} << 40;
// What a node may let lie here of what it has itself granted: 16 pairs' windows.
constexpr std::size_t most_relayed_bytes = 16 * relay_window;

}  // namespace

// ---------------------------------------------------------------- the carrier

/// Onto a carrier. A frame is bytes of a stream: one that still waits takes the next of its pair with it.
void LinkCore::queue_relayed(Peer& carrier, Message message) {
    if (auto* frame = std::get_if<RelayFrame>(&message)) {
        carrier.relayed_bytes += frame->payload.size();
        auto* last = carrier.outbox.empty() ? nullptr : std::get_if<RelayFrame>(&carrier.outbox.back());
        if (last && last->pair == frame->pair && last->payload.size() + frame->payload.size() <= relay_piece) {
            last->payload.insert(last->payload.end(), frame->payload.begin(), frame->payload.end());
            return;
        }
    }
    if (carrier.relayed_bytes > most_relayed_bytes) {
        begin_close(carrier, {ErrorKind::overloaded, "slow_peer", "too much waits for this node: it does not read"},
                    now_);
        return;
    }
    send(carrier.id, std::move(message));
}

/// At the coordinator: a node's relay connection belongs to its session, which is found by who it is.
void LinkCore::open_relay(Peer& peer, Instant now) {
    const auto& identity = peer.channel->peer()->identity;
    const auto* control = live_control(identity, peer.id);
    if (!control) {
        begin_close(peer, {ErrorKind::refused, "unknown_session", "no session of this identity is open"}, now);
        return;
    }
    if (count_attached(control->id, ConnectionKind::relay) >= limits_.relays_per_session) {
        begin_close(peer, {ErrorKind::overloaded, "too_many_connections", "this session has enough connections"}, now);
        return;
    }
    peer.kind = ConnectionKind::relay;
    attach_to(peer, control->id);
    stream_traffic_.received += peer.traffic.received;
    stream_traffic_.sent += peer.traffic.sent;
    peer.outbox.push_back(StreamOpen{});
    unsent_.insert(peer.id);
    const auto id = peer.id;
    admit(peer, now);
    relay_.opened(id, identity.node);
}

bool LinkCore::ask_for_relay(const std::string& node, const RelayOpen& open) {
    for (auto& [id, peer] : peers_) {
        const bool session = peer.phase == Phase::open && peer.accepted && peer.kind == ConnectionKind::control;
        if (session && peer.channel->peer() && peer.channel->peer()->identity.node == node &&
            peer.channel->peer()->identity.role != Role::operator_) {
            send(id, open);
            return true;
        }
    }
    return false;
}

void LinkCore::relay_message(Peer& carrier, Message message) {
    if (end_ == LinkEnd::coordinator) {
        if (const auto taken = relay_.handle(carrier.id, std::move(message), now_); !taken) {
            bad_message(carrier, taken.error());
        }
        return;
    }
    if (const auto* open = std::get_if<RelayOpen>(&message)) {
        accept_relayed(carrier, *open);
        return;
    }
    auto* frame = std::get_if<RelayFrame>(&message);
    const auto* credit = std::get_if<RelayCredit>(&message);
    const auto* over = std::get_if<RelayEnd>(&message);
    const auto pair = frame ? frame->pair : credit ? credit->pair : over ? over->pair : 0;
    const auto found = relayed_.find({carrier.id, pair});
    if (found == relayed_.end()) {
        return;  // it has ended here while this was on the way
    }
    auto& peer = *find(found->second);
    if (frame) {
        take_relayed(peer, carrier, frame->payload);
    } else if (credit) {
        peer.may_send = std::min(peer.may_send + credit->bytes, most_credit);
        unsent_.insert(peer.id);
    } else {
        const auto why = over->code.empty() || over->code == "ended" ? std::string("connection_lost") : over->code;
        lose(peer.id, {ErrorKind::disconnected, why, "by relay: " + over->message});
    }
}

// ---------------------------------------------------------------- a node's relayed streams

/// Our end asks: RelayOpen and our credits go ahead; our first frame waits for the other's.
bool LinkCore::dial_relayed(Peer& peer, const ConnectOptions& options) {
    auto* carrier = find(options.via);
    if (!carrier || carrier->phase != Phase::open || carrier->kind != ConnectionKind::relay || !options.peer) {
        begin_close(peer, {ErrorKind::disconnected, "no_relay", "there is no relay connection to the coordinator"},
                    now_);
        return false;
    }
    peer.carrier = options.via;
    peer.pair = peer.id;
    peer.address = options.peer->node + " by relay";
    peer.may_take = relay_window;
    relayed_[{peer.carrier, peer.pair}] = peer.id;
    queue_relayed(*carrier, RelayOpen{peer.pair, options.peer->node, options.peer->experiment});
    queue_relayed(*carrier, RelayCredit{peer.pair, relay_window});
    return true;
}

/// Another node asks. It is a stranger until its certificate has been seen; its name is only the coordinator's word.
void LinkCore::accept_relayed(Peer& carrier, const RelayOpen& open) {
    const auto refuse = [&](const char* code, const char* message) {
        queue_relayed(carrier, RelayEnd{open.pair, code, message});
    };
    const bool rostered = std::ranges::any_of(roster_, [&](const StreamPeer& line) {
        return line.node == open.node && line.experiment == open.experiment && now_ < line.expires;
    });
    const auto theirs =
        std::ranges::count_if(relayed_, [&](const auto& entry) { return entry.first.first == carrier.id; });
    if (!rostered) {
        return refuse("not_on_roster", "the coordinator has not said that these two nodes may talk");
    }
    if (static_cast<std::size_t>(theirs) >= relay_pairs_per_node || relayed_.contains({carrier.id, open.pair})) {
        return refuse("too_many_pairs", "this node has enough relayed streams");
    }
    const auto id = port_.new_connection();
    if (!accept(id, open.node + " by relay", now_)) {
        return refuse("overloaded", "this node has too many connections");
    }
    auto& peer = *find(id);
    peer.carrier = carrier.id;
    peer.pair = open.pair;
    peer.may_take = relay_window;
    relayed_[{peer.carrier, peer.pair}] = id;
    queue_relayed(carrier, RelayCredit{peer.pair, relay_window});
}

/// Credits go back as bytes are taken in; while our owner does not take events nothing is read, and nothing granted.
void LinkCore::take_relayed(Peer& peer, Peer& carrier, ByteView bytes) {
    if (bytes.size() > peer.may_take) {
        begin_close(peer, {ErrorKind::overloaded, "beyond_credit", "more came by relay than was granted"}, now_);
        return;
    }
    peer.may_take -= bytes.size();
    peer.owed += bytes.size();
    if (peer.owed >= grant_step) {
        peer.may_take += peer.owed;
        queue_relayed(carrier, RelayCredit{peer.pair, std::exchange(peer.owed, 0)});
    }
    receive(peer.id, bytes, now_, unix_s_);
}

/// Sealed frames become bytes on the carrier, as far as credits go; a frame's rest waits.
void LinkCore::flush_relayed(Peer& peer, Instant now) {
    auto* carrier = find(peer.carrier);
    while (carrier && carrier->phase == Phase::open && (!peer.frames.empty() || seal_next(peer, now))) {
        const ByteView rest = ByteView(peer.frames.front()).subspan(peer.frame_offset);
        const auto size = std::min({rest.size(), relay_piece, static_cast<std::size_t>(peer.may_send)});
        if (size == 0) {
            return;
        }
        peer.may_send -= size;
        peer.frame_offset += size;
        account(peer, 0, size);
        queue_relayed(*carrier, RelayFrame{peer.pair, to_bytes(rest.first(size))});
        if (size < rest.size()) {
            continue;
        }
        peer.frames.pop_front();
        peer.frame_offset = 0;
        if (const auto chunks = peer.frames.empty() ? std::exchange(peer.sealed_chunks, 0) : 0; chunks > 0) {
            events_.emplace_back(PeerSent{peer.id, chunks});
        }
    }
    unsent_.erase(peer.id);
}

/// After the end of a peer: a relayed stream's other end is told; a carrier takes its streams along.
void LinkCore::end_relayed(const Peer& gone) {
    if (gone.carrier != 0) {
        relayed_.erase({gone.carrier, gone.pair});
        if (auto* carrier = find(gone.carrier); carrier && carrier->phase == Phase::open) {
            const bool planned = gone.why.code == "bye";
            queue_relayed(*carrier, RelayEnd{gone.pair, planned ? "" : gone.why.code, gone.why.message});
        }
    }
    if (gone.kind != ConnectionKind::relay) {
        return;
    }
    relay_.closed(gone.id);
    std::vector<ConnectionId> carried;
    for (const auto& [place, id] : relayed_) {
        if (place.first == gone.id) {
            carried.push_back(id);
        }
    }
    for (const auto id : carried) {
        lose(id, {ErrorKind::disconnected, "connection_lost", "the relay connection is gone: " + gone.why.message});
    }
}

}  // namespace causeway
