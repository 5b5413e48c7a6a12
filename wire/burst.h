// When a burst of something is over, and what is one for a link. Pure.
#pragma once

#include <cstdint>

#include "common/time.h"

namespace causeway {

constexpr std::uint64_t burst_bytes = 1 << 20;    // worth a look at the heap
constexpr std::uint64_t quiet_bytes = 256 << 10;  // within quiet_time: heartbeats of 1,000 sessions stay below
constexpr std::uint64_t many_gone = 255;  // connections that have ended, each of which leaves 8 KB of free pages
constexpr std::uint64_t some_gone = 31;   // the same, when no more end: ZeroMQ lets go of them a little later
constexpr Duration gone_time = std::chrono::milliseconds(250);

/// What leaves free pages behind, counted from the start: when much of it has come and no more than little since for a
/// pause, or too much without one, the burst is over.
struct Burst {
    std::uint64_t little, much;
    Duration pause;
    std::uint64_t too_much = UINT64_MAX;
    std::uint64_t when_quiet = 0, when_over = 0;
    Instant quiet_since{};

    bool is_over(Instant now, std::uint64_t so_far) {
        if (so_far - when_quiet > little) {
            when_quiet = so_far;
            quiet_since = now;
        }
        const bool over = so_far - when_over > too_much || (so_far - when_over > much && now - quiet_since > pause);
        when_over = over ? so_far : when_over;
        return over;
    }
};

}  // namespace causeway
