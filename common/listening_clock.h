// The time in which a loop ran and listened: all that the deadlines of its machines count.
//
// A loop has a turn at least every `longest_wait`. A longer gap between two turns means that this process stood still
// (stopped, its machine suspended, its thread blocked), and then nobody else is late. Such a gap does not count, nor
// does the time right after it, in which what waits in sockets and queues is heard. If the loop stands still again in
// that time, at most `longest_gap` counts: one whose every turn is slow still comes to each of its deadlines, only
// later. The daemon's, the node's and the simulator's loops take the `now` of their machines from here; sockets and
// certificates go by the real clock.
//
// threads  reentrant
#pragma once

#include <algorithm>

#include "common/time.h"

namespace causeway {

class ListeningClock {
public:
    static constexpr Duration longest_wait = std::chrono::milliseconds(250);
    static constexpr Duration longest_gap = std::chrono::milliseconds(500);
    static constexpr Duration hearing = std::chrono::seconds(1);

    explicit ListeningClock(Instant real = {}) : real_(real), now_(real) {}

    /// A turn begins at this real instant. returns  how long this process stood still before it; 0: it did not
    Duration turn(Instant real) {
        const auto gap = std::max(real - real_, Duration::zero());
        const bool stood_still = gap > longest_gap;
        if (stood_still && hearing_left_ == Duration::zero()) {
            hearing_left_ = hearing;
        } else {
            count(std::min(gap, hearing_left_ + longest_gap));
        }
        real_ = std::max(real_, real);
        return stood_still ? gap : Duration::zero();
    }
    /// Turns came all the while until this real instant, and nothing happened in them: the simulator does not run them.
    void ran_until(Instant real) {
        count(std::max(real - real_, Duration::zero()));
        real_ = std::max(real_, real);
    }

    [[nodiscard]] Instant now() const { return now_; }
    /// The `now` of what is heard before the machines are woken: not yet the instant that they wait for.
    [[nodiscard]] Instant before(Instant wake_at) const {
        return wake_at > now_ ? now_ : wake_at - std::chrono::nanoseconds(1);
    }
    /// When now() will be this if nothing stands still: a real instant.
    [[nodiscard]] Instant real_at(Instant now) const {
        if (now <= now_) {
            return real_;
        }
        const auto wait = now - now_ + hearing_left_;
        return wait < never - real_ ? real_ + wait : never;
    }

private:
    void count(Duration ran) {
        const auto heard = std::min(hearing_left_, ran);
        hearing_left_ -= heard;
        now_ += ran - heard;
    }

    Instant real_;  // of the last turn
    Instant now_;
    Duration hearing_left_{};
};

}  // namespace causeway
