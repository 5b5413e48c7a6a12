// When a silent peer is suspected. Pure: the link tells it what it heard and when.
//
// Where heartbeats come regularly the bound is just below 2 s (four missed beats); on a worse link it follows the
// largest gap seen lately, because a slow link that moves is healthy. source: in the spirit of the phi accrual detector
// (Hayashibara et al. 2004), with a maximum instead of a distribution.
//
// threads  reentrant
#pragma once

#include <algorithm>
#include <cmath>

#include "common/time.h"

namespace causeway {

enum class Pace { idle, leased };  // heartbeats every 2 s, every 500 ms

constexpr Duration heartbeat_interval(Pace pace) {
    return pace == Pace::leased ? std::chrono::milliseconds(500) : std::chrono::seconds(2);
}

constexpr std::size_t least_stream_bytes = 16 * 1024;         // one TLS record
constexpr std::size_t first_stream_bytes = 64 * 1024;         // a second at 0.5 Mbit/s: before anything is measured

/// What a stream sends at one time, from how long its peer's answers take: what is on its way is a sign of life only
/// when it has come whole.
constexpr std::size_t paced(std::size_t bytes, Duration round_trip, std::size_t most) {
    constexpr Duration slow = std::chrono::seconds(1), quick = std::chrono::milliseconds(250);
    return round_trip > slow    ? std::max(least_stream_bytes, bytes / 2)
           : round_trip < quick ? std::min(most, bytes * 2)
                                : bytes;
}

class Liveness {
public:
    /// Of a connection that is at work from its first moment nothing is known either: it is given an idle peer's gaps.
    explicit Liveness(Instant now, Pace pace = Pace::idle) : last_heard_(now), pace_(pace) {}

    /// A complete frame came on any of the peer's connections. True when the peer had been suspected.
    bool heard(Instant now) {
        const Duration gap = std::max(now - last_heard_, Duration(0));
        largest_gap_ = std::max(gap, from_seconds(seconds(largest_gap_) * std::exp2(-seconds(gap) / half_life_s)));
        last_heard_ = now;
        return std::exchange(suspected_, false);
    }
    /// True once per silence, when the bound has passed.
    bool suspect(Instant now) { return !suspected_ && now - last_heard_ > bound() && (suspected_ = true); }
    /// Gaps so far were those of the pace so far. At work a peer answers the change of pace at once, so what it left
    /// unsaid at rest is neither held against it nor a reason to wait longer for it.
    void set_pace(Pace pace, Instant now) {
        if (pace_ == Pace::idle && pace == Pace::leased && !suspected_) {
            const auto slower = heartbeat_interval(Pace::idle) - heartbeat_interval(Pace::leased);
            largest_gap_ = std::max(std::max(largest_gap_, now - last_heard_) - slower, Duration(0));
            last_heard_ = std::max(last_heard_, now);
        }
        pace_ = pace;
    }
    /// We ourselves did not look for so long: it says nothing about the peer.
    void forgive(Duration stall) { last_heard_ += stall; }

    [[nodiscard]] Duration bound() const {
        const Duration regular = pace_ == Pace::leased ? std::chrono::milliseconds(1900) : std::chrono::seconds(6);
        return std::clamp(3 * largest_gap_, regular, longest_bound);
    }
    /// When the present silence is one of `longest`, or of the bound if it has not passed yet.
    [[nodiscard]] Instant silent_at(Duration longest) const {
        return last_heard_ + (suspected_ ? longest : std::min(longest, bound())) + std::chrono::nanoseconds(1);
    }
    [[nodiscard]] Duration silence(Instant now) const { return now - last_heard_; }

private:
    static constexpr Duration longest_bound = std::chrono::seconds(30);
    static constexpr double half_life_s = 2;  // a change of pace is forgotten within a few beats

    Instant last_heard_;
    Duration largest_gap_ = std::chrono::seconds(2);  // before anything is known: an idle peer's
    Pace pace_ = Pace::idle;
    bool suspected_ = false;
};

}  // namespace causeway
