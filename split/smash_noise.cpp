// See smash_noise.h.
#include "split/smash_noise.h"

#include "common/random.h"
#include "common/result.h"

namespace causeway {

void add_smash_noise(std::span<float> values, std::uint64_t rows, const SmashNoise& noise, std::uint64_t step) {
    if (noise.scale == 0 || rows == 0) {
        return;
    }
    ASSERT(values.size() % rows == 0);
    const std::size_t width = values.size() / rows;
    for (std::uint64_t row = 0; row < rows; ++row) {
        RandomStream random({.seed = noise.seed,
                             .purpose = "smash-noise",
                             .round = noise.round,
                             .node = noise.node,
                             .step = step,
                             .layer = row});  // a stream of its own for each example, however wide the cut is
        for (auto& value : values.subspan(row * width, width)) {
            value = static_cast<float>(static_cast<double>(value) + noise.scale * random.normal());
        }
    }
}

}  // namespace causeway
