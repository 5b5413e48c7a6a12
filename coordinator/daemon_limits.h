// What a daemon's owner may set in STATE/coordinator.toml and change while it runs (SIGHUP reads it again).
//
// The command line fills it; the store thread and the workers read it at each use: a change counts from the next
// certificate on.
// threads  thread-safe
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/identity.h"

namespace causeway {

constexpr std::int64_t shortest_certificate_s = 10;  // tests; a person would not go below an hour
constexpr std::int64_t longest_certificate_s = 825 * day_s;

/// Of updates that are on their way into sums: as much as the largest single one may be.
constexpr std::uint64_t default_spool_quota = std::uint64_t{64} << 30;

struct DaemonLimits {
    std::atomic<std::int64_t> certificate_lifetime_s{node_certificate_s};
    std::atomic<std::uint64_t> spool_quota{default_spool_quota};  // bytes
    std::atomic<std::uint64_t> state_quota{0};                    // models and store; 0: none
};

}  // namespace causeway
