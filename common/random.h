// Counter-based randomness: a number is a function of what it is for, never of what was drawn before.
//
// Philox4x32-10 (Salmon et al., SC 2011), keyed by (seed, purpose, round, node key, step, layer); the counter is the
// sample index. Every random choice in training, partitioning and selection comes from here, so runs repeat.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace causeway {

/// One Philox4x32-10 block: four 32-bit numbers. source: Salmon et al. 2011, section 4; Random123's vectors in tests.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// The first 64 bits of the SHA-256 of the node's name, little-endian.
std::uint64_t node_key(std::string_view node_name);

/// What a stream of numbers is for. Two equal keys give the same stream; any difference gives an unrelated one.
struct RandomKey {
    std::uint64_t seed = 0;
    std::string_view purpose;  // "initialise", "batch-order", "partition", "holdout", "cohort", ...
    std::uint64_t round = 0;
    std::uint64_t node = 0;  // node_key(name), 0 where no node is meant
    std::uint64_t step = 0;
    std::uint64_t layer = 0;
};

/// threads  reentrant
class RandomStream {
public:
    explicit RandomStream(const RandomKey& key);

    std::uint32_t next_u32();
    std::uint64_t next_u64();
    /// In [0, 1), 53 bits.
    double uniform();
    /// In [0, bound), without bias. bound > 0.
    std::uint64_t below(std::uint64_t bound);
    /// Standard normal, by Box-Muller.
    double normal();
    /// Gamma(shape, 1), Marsaglia and Tsang 2000. shape > 0.
    double gamma(double shape);
    /// A permutation of 0..count-1, Fisher-Yates.
    std::vector<std::uint32_t> permutation(std::size_t count);
    /// Jumps so that the next number is the first of sample `index`: numbers 4*index.. of this stream.
    void seek(std::uint64_t index);

private:
    std::array<std::uint32_t, 2> key_{};
    std::array<std::uint32_t, 2> high_{};  // upper half of the counter, from the key as well
    std::uint64_t index_ = 0;
    std::array<std::uint32_t, 4> block_{};
    int used_ = 4;
};

}  // namespace causeway
