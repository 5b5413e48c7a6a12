// Bytes that one thread counts and others look at.
//
// threads  store on one thread, load on any; the two numbers may be of different instants
#pragma once

#include <atomic>

#include "wire/link.h"

namespace causeway {

struct SharedTraffic {
    std::atomic<std::uint64_t> received{0};
    std::atomic<std::uint64_t> sent{0};

    void store(const Traffic& traffic) {
        received.store(traffic.received, std::memory_order_relaxed);
        sent.store(traffic.sent, std::memory_order_relaxed);
    }
    [[nodiscard]] Traffic load() const {
        return {received.load(std::memory_order_relaxed), sent.load(std::memory_order_relaxed)};
    }
};

}  // namespace causeway
