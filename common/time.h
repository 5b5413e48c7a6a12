// Time as the machines see it: an Instant is handed in once per turn of a loop and stands still within it.
//
// Only real_now() and wall_clock_unix_s() read clocks; nothing in a pure machine may call them (tests/tidy checks).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace causeway {

using Instant = std::chrono::nanoseconds;  // since the process (or the simulated world) started
using Duration = std::chrono::nanoseconds;
constexpr Instant never = Instant::max();

/// The monotonic clock, since this process started. For daemons, never for pure code.
Instant real_now();
/// Seconds since 1970 by the machine's clock: certificates, tokens, log lines. Never for ordering.
std::int64_t wall_clock_unix_s();

double seconds(Duration duration);
Duration from_seconds(double seconds);

/// "250ms", "30s", "10m", "2h", "1d": a number and a unit. errors: invalid when either is missing or negative.
Result<Duration> parse_duration(std::string_view text);
/// "250ms", "1.5s", "2m 05s", "3h 10m": what a person reads.
std::string format_duration(Duration duration);

}  // namespace causeway
