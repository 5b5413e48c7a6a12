// What a node's owner may set in STATE/node.toml and change while it runs (SIGHUP reads it again).
//
// The command line fills it; the files thread reads it at each use: a change counts from the next model on.
// threads  thread-safe
#pragma once

#include <atomic>
#include <cstdint>

namespace causeway::node {

struct NodeLimits {
    std::atomic<std::uint64_t> cache_quota{0};  // bytes of models, one that is coming included; 0: not set
};

}  // namespace causeway::node
