// Whose word counts: one member's lease on one round, as the coordinator sees it.
//
// A member that falls silent loses its lease, not its assignment: within `rejoin` it may resync and gets the next
// attempt. What it says under an older attempt never counts. The link thread measures silence; this machine only
// keeps what follows from it, and does nothing itself.
//
//   suspected --resync-----------> active (attempt + 1)        a lease begins suspected, at attempt 0
//             --rejoin over------> expired: the round drops it
//   active    --silence, close---> suspected
//             --resync-----------> active (attempt + 1)        a new session took over from an old one
//   either    --settle-----------> settled   (absorbing)       its update is in the sum, or was refused
//             --drop-------------> dropped   (absorbing)
#pragma once

#include <cstdint>

#include "common/time.h"

namespace causeway {

class MemberLease {
public:
    enum class State { active, suspected, settled, dropped };

    /// Suspected until the first resync, which is due within `first_wait`; later ones are due within `rejoin`.
    MemberLease(Duration rejoin, Duration first_wait, Instant now)
        : rejoin_(rejoin), deadline_(after(now, first_wait)) {}

    /// The member is there and is told of its assignment. False in an absorbing state.
    bool resync();
    /// No sign of life; it may come back for `grace` at least. False unless the lease was active.
    bool suspect(Instant now, Duration grace = {});
    bool settle();
    bool drop();

    /// Words under this attempt count now.
    [[nodiscard]] bool holds(std::uint32_t attempt) const { return state_ == State::active && attempt == attempt_; }
    [[nodiscard]] bool over() const { return state_ == State::settled || state_ == State::dropped; }
    /// It did not come back in time.
    [[nodiscard]] bool expired(Instant now) const { return state_ == State::suspected && now >= deadline_; }
    /// When it expires unless it resyncs; `never` while nothing is due.
    [[nodiscard]] Instant deadline() const { return state_ == State::suspected ? deadline_ : never; }
    [[nodiscard]] State state() const { return state_; }
    [[nodiscard]] std::uint32_t attempt() const { return attempt_; }

private:
    static Instant after(Instant now, Duration wait) { return wait >= never - now ? never : now + wait; }
    bool finish(State state);

    Duration rejoin_;
    Instant deadline_;
    State state_ = State::suspected;
    std::uint32_t attempt_ = 0;
};

}  // namespace causeway
