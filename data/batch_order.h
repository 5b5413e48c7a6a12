// In which order an epoch sees the examples, and how they are cut into batches.
//
// The order is a function of (seed, round, node, epoch), never of what was drawn before: a client that restarts in
// the middle of a round trains on the same batches again, and the simulator on the same as the real node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace causeway {

struct BatchKey {
    std::uint64_t seed = 0;
    std::uint64_t round = 0;
    std::uint64_t node = 0;   // node_key(name)
    std::uint64_t epoch = 0;  // within the round, from 0
};

/// The batches of one epoch. Each example is in exactly one; the last batch may be short.
class EpochBatches {
public:
    /// batch 0 (or one that holds all): a single batch in the dataset's own order, for a shuffle would only change
    /// how its sums round. Otherwise a permutation drawn from the key. cost: 4 bytes an example
    EpochBatches(std::size_t examples, std::size_t batch, const BatchKey& key);

    [[nodiscard]] std::size_t size() const;  // number of batches
    /// The examples of a batch, index < size().
    [[nodiscard]] std::span<const std::uint32_t> operator[](std::size_t index) const;

private:
    std::vector<std::uint32_t> order_;
    std::size_t batch_;
};

/// Number of batches of an epoch without drawing it (batch 0: one). 0 for no examples.
[[nodiscard]] std::size_t batch_count(std::size_t examples, std::size_t batch);

/// Copies examples side by side.
///
/// shapes  indices u32[B] below dataset.size(), features f32[B, shape...], labels u32[B] or empty when not wanted
/// cost    reads and writes 4 B x example_size() bytes
void gather(const Dataset& dataset, std::span<const std::uint32_t> indices, std::span<float> features,
            std::span<std::uint32_t> labels);

}  // namespace causeway
