// Noise on smashed data, so that what crosses the cut tells less of the inputs: Gaussian, of a stated scale.
//
// Every value gets its own draw from (seed, round, node, step, example of the batch), so a turn that is repeated sends
// the same bytes again and a replay finds them. The gradient that comes back is that of the noisy values: the host's
// loss saw those. It is no privacy guarantee: nothing bounds the smashed data that the noise is added to; the
// distance correlation (leakage.h) says what a scale buys on given data. Pure, any thread.
#pragma once

#include <cstdint>
#include <span>

namespace causeway {

struct SmashNoise {
    double scale = 0;  // standard deviation; 0: none
    std::uint64_t seed = 0;
    std::uint64_t round = 0;
    std::uint64_t node = 0;  // node_key(name)
};

/// Adds it to one batch. `step` counts the turn's batches, epochs included: epoch * batches + batch.
///
/// shapes  values f32[rows, width]
void add_smash_noise(std::span<float> values, std::uint64_t rows, const SmashNoise& noise, std::uint64_t step);

}  // namespace causeway
