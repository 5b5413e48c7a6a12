// Messages of streams that are here before the turn that they are for.
//
// A peer may begin as soon as its own side has, so a few come early. What a peer may make a node hold is bounded: of
// each node as many messages as a turn leaves waiting and as many bytes as the largest message has, and so many of all
// together. Beyond that the eldest go, whose turn then misses a batch and begins anew. Thread: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "wire/message.h"

namespace causeway::node {

/// Of one peer, also while its turn runs: labels, values and gradients of one microbatch, and with an overlap those of
/// the batches after it.
constexpr std::size_t most_waiting_messages = 64;
constexpr std::uint64_t most_waiting_bytes = 256 << 20;

class EarlyMessages {
public:
    /// In bytes of payload, of all nodes.
    explicit EarlyMessages(std::uint64_t most_in_all = std::uint64_t{1} << 30) : most_in_all_(most_in_all) {}

    void put(const std::string& node, StreamData message);
    /// Those of this lease, in the order in which they came; they are no longer here.
    std::vector<StreamData> take(const Lease& lease);
    /// The turn will not be, or not here.
    void forget(const Lease& lease) { (void)take(lease); }
    void forget(std::uint64_t experiment);
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    struct Early {
        std::string node;
        StreamData message;
    };
    /// Its bytes.
    std::uint64_t drop_eldest_of(const std::string& node);

    std::uint64_t most_in_all_;
    std::uint64_t bytes_ = 0;
    std::deque<Early> all_;
};

}  // namespace causeway::node
