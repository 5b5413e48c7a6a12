// Streams between nodes: who may have one is on the roster, a list that the coordinator sends, renews, and lets expire.
//
// Both ends judge: the accepting one by the exact certificate that connects, the connecting one by the exact
// certificate that answers. A stream lives as long as its line of the roster; a new roster closes those it leaves out.
// Thread: the link thread.
#include <algorithm>

#include "wire/link_core.h"

namespace causeway {
namespace {

Error not_on_roster(const Identity& who) {
    return {ErrorKind::refused, "not_on_roster",
            "the coordinator has not said that " + who.node +
                " and this node may talk: streams are for nodes of one group while they work"};
}

}  // namespace

/// The live line for exactly this peer; of any experiment where none is named.
const StreamPeer* LinkCore::on_roster(const Peer& peer, std::optional<std::uint64_t> experiment) const {
    const auto& who = *peer.channel->peer();
    const auto found = std::ranges::find_if(roster_, [&](const StreamPeer& line) {
        return line.fingerprint == who.fingerprint && line.node == who.identity.node &&
               line.role == who.identity.role && (!experiment || line.experiment == *experiment) && now_ < line.expires;
    });
    return found == roster_.end() ? nullptr : &*found;
}

/// Right after the handshake. False: it is being closed.
bool LinkCore::greet_node(Peer& peer) {
    if (on_roster(peer, std::nullopt)) {
        return true;
    }
    begin_close(peer, not_on_roster(peer.channel->peer()->identity), now_);
    return false;
}

void LinkCore::open_stream(Peer& peer, const StreamOpen& open, Instant now) {
    const auto* line = on_roster(peer, open.experiment);
    if (!line) {
        begin_close(peer, not_on_roster(peer.channel->peer()->identity), now);
        return;
    }
    const auto siblings = std::ranges::count_if(peers_, [&](const auto& entry) {
        const auto& other = entry.second;
        return other.accepted && other.phase == Phase::open && other.rostered && other.rostered->node == line->node &&
               other.rostered->experiment == line->experiment;
    });
    if (static_cast<std::size_t>(siblings) >= limits_.streams_per_peer) {
        begin_close(peer, {ErrorKind::overloaded, "too_many_connections", "this node has enough streams here"}, now);
        return;
    }
    peer.kind = ConnectionKind::stream;
    peer.rostered = *line;
    if (peer.carrier == 0) {  // the handshake's bytes were bytes too
        stream_traffic_.received += peer.traffic.received;
        stream_traffic_.sent += peer.traffic.sent;
    }
    peer.outbox.push_back(open);
    unsent_.insert(peer.id);
    admit(peer, now);
}

/// TLS is up: is it who it must be, and may we still? Then StreamOpen is said, and its echo awaited: TLS is up at this
/// end before the other has judged us.
void LinkCore::ask_for_stream(Peer& peer, Instant now) {
    if (peer.kind == ConnectionKind::relay) {
        peer.phase = Phase::greeting;
        peer.outbox.push_back(StreamOpen{});
        unsent_.insert(peer.id);
        return;
    }
    const auto& who = *peer.channel->peer();
    const auto wanted = peer.rostered.value_or(StreamPeer{});
    if (who.fingerprint != wanted.fingerprint || who.identity.node != wanted.node || who.identity.role != wanted.role) {
        begin_close(peer,
                    {ErrorKind::refused, "wrong_peer",
                     peer.address + " is " + std::string(to_string(who.identity.role)) + " " + who.identity.node +
                         " with certificate " + who.fingerprint.short_hex() + ", and not " +
                         std::string(to_string(wanted.role)) + " " + wanted.node + " with certificate " +
                         wanted.fingerprint.short_hex() + ": see its --listen"},
                    now);
        return;
    }
    const auto* line = on_roster(peer, wanted.experiment);
    if (!line) {
        begin_close(peer, not_on_roster(who.identity), now);
        return;
    }
    peer.rostered = *line;
    peer.phase = Phase::greeting;
    peer.outbox.push_back(StreamOpen{wanted.experiment});
    unsent_.insert(peer.id);
}

void LinkCore::answer_to_stream(Peer& peer, const Message& answer, Instant now) {
    const auto* open = std::get_if<StreamOpen>(&answer);
    const auto* notice = std::get_if<ErrorNotice>(&answer);
    if (open && open->experiment == (peer.rostered ? peer.rostered->experiment : 0)) {
        admit(peer, now);
    } else if (notice) {
        begin_close(peer, {notice->kind, notice->code, notice->message}, now);
    } else {
        begin_close(peer,
                    {ErrorKind::invalid, "stream_open_expected",
                     "the answer to stream_open must be the same, not " + std::string(message_name(answer))},
                    now);
    }
}

// Streams that the new roster has not get the code of those that it has no more: to their owners both are over.
void LinkCore::allow_streams(std::vector<StreamPeer> peers) {
    roster_ = std::move(peers);
    for (auto& [id, peer] : peers_) {
        if (peer.kind == ConnectionKind::stream && peer.phase == Phase::open) {
            const auto* line = on_roster(peer, peer.rostered->experiment);
            peer.deadline = line ? line->expires : now_;
            be_due(peer.deadline);
        }
    }
}

/// What a relayed stream moves is its carrier's: counted once.
void LinkCore::account(Peer& peer, std::size_t received, std::size_t sent) {
    peer.traffic.received += received;
    peer.traffic.sent += sent;
    if (peer.counted) {
        traffic_.received += received;
        traffic_.sent += sent;
    }
    if ((peer.kind == ConnectionKind::stream && peer.carrier == 0) || peer.kind == ConnectionKind::relay) {
        stream_traffic_.received += received;
        stream_traffic_.sent += sent;
    }
    if (peer.kind == ConnectionKind::bulk && peer.counted) {
        bulk_traffic_.received += received;
        bulk_traffic_.sent += sent;
    }
}

}  // namespace causeway
