// Signs of life: who beats, who is asked, who is silent, and how long a frame may take on a slow line.
//
// Sessions are suspected and kept for a while, since a member's lease outlives its silence. A stream is lost at once: a
// turn begins anew from its last hand-over, and its other half may be stopped while the coordinator still hears it.
// What a stream sends at one time follows from how long its heartbeats' answers take: a frame shows only when it is
// whole, so on a slow line long ones would look like silence. Thread: the link thread.
#include <algorithm>

#include "wire/link_core.h"

namespace causeway {
namespace {

constexpr std::uint64_t beats_a_question = 8;  // of a session; a round trip changes slowly

}  // namespace

/// A session that is silent for so long is closed.
Duration LinkCore::longest_silence(const Peer& peer) const {
    return std::max(limits_.dead, 2 * peer.liveness.bound());
}

void LinkCore::tick_open(Peer& peer, Instant now) {
    if (now >= peer.deadline && peer.kind == ConnectionKind::stream) {
        begin_close(peer,
                    {ErrorKind::refused, "roster_expired",
                     "the coordinator does not say any more that this node and " + peer.rostered->node +
                         " may talk: it is renewed while both work together"},
                    now);
        return;
    }
    if (now >= peer.deadline) {  // an enrolment
        begin_close(peer, {ErrorKind::timed_out, "join_timeout", "the enrolment took too long: try again"}, now);
        return;
    }
    if (peer.kind == ConnectionKind::stream) {
        watch_stream(peer, now);
    } else if (peer.kind == ConnectionKind::control) {
        watch_session(peer, now);
    }
}

void LinkCore::watch_session(Peer& peer, Instant now) {
    if (now >= peer.next_heartbeat) {
        const bool asks = end_ == LinkEnd::coordinator && peer.heartbeats % beats_a_question == 0;
        queue_heartbeat(peer, {.asks = asks});
        peer.next_heartbeat = now + heartbeat_interval(peer.pace);
    }
    if (peer.liveness.suspect(now)) {
        events_.emplace_back(PeerSilent{peer.id, peer.liveness.silence(now)});
    }
    if (peer.liveness.silence(now) > longest_silence(peer)) {
        begin_close(
            peer,
            {ErrorKind::timed_out, "silent", "no sign of life for " + format_duration(peer.liveness.silence(now))},
            now);
    }
}

/// Beats at the pace of work for as long as it is open; each asks, unless the last question is still open.
void LinkCore::watch_stream(Peer& peer, Instant now) {
    if (now >= peer.next_heartbeat) {
        if (peer.asked != 0) {
            measure(peer, now - peer.asked_at);  // at least so long
        }
        queue_heartbeat(peer, {.asks = peer.asked == 0});
        peer.next_heartbeat = now + heartbeat_interval(peer.pace);
    }
    if (peer.liveness.suspect(now)) {
        const auto silence = format_duration(peer.liveness.silence(now));
        lose(peer.id, {ErrorKind::timed_out, "silent", "no sign of life for " + silence});
    }
}

void LinkCore::measure(Peer& peer, Duration round_trip) {
    events_.emplace_back(PeerMeasured{peer.id, round_trip});
}

void LinkCore::hear_heartbeat(Peer& peer, const Heartbeat& beat) {
    if (beat.asks) {
        queue_heartbeat(peer, {.answers = beat.sequence});
    }
    if (beat.answers != 0 && beat.answers == peer.asked) {
        peer.asked = 0;
        measure(peer, now_ - peer.asked_at);
    }
}

/// At most one waits: a peer that does not read gets no pile of them.
void LinkCore::queue_heartbeat(Peer& peer, Heartbeat beat) {
    const bool waits = !peer.outbox.empty() && std::holds_alternative<Heartbeat>(peer.outbox.front());
    if (!waits) {
        peer.outbox.push_front(Heartbeat{++peer.heartbeats});
        unsent_.insert(peer.id);
    }
    auto& waiting = std::get<Heartbeat>(peer.outbox.front());
    waiting.asks = waiting.asks || beat.asks;
    waiting.answers = std::max(waiting.answers, beat.answers);
    if (beat.asks && peer.asked == 0) {  // one question at a time, so that a slow answer is known for what it is
        peer.asked = waiting.sequence;
        peer.asked_at = now_;
    }
}

/// A complete frame is a sign of life of the whole session.
void LinkCore::heard(Peer& peer, Instant now) {
    if (peer.phase != Phase::open) {
        return;
    }
    if (peer.kind == ConnectionKind::stream) {
        (void)peer.liveness.heard(now);
        return;
    }
    auto& control = control_of(peer);
    if (control.phase != Phase::open || control.kind != ConnectionKind::control) {
        return;
    }
    if (control.liveness.heard(now)) {
        events_.emplace_back(PeerHeard{control.id});
    }
    settle_contentions(control.id, true, now);
}

}  // namespace causeway
