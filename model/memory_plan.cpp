// One walk along the chain; recomputed blocks then hand out the same numbers again, block by block.
#include "model/memory_plan.h"

#include <algorithm>

namespace causeway {
namespace {

/// Whether a layer's output may lie where its input does: a view, or one that runs in place on what nobody reads again.
bool may_share(const Chain& chain, std::size_t layer) {
    return chain.layer(layer).is_view() || (layer > 0 && overwrites(chain.layer(layer), chain.layer(layer - 1)));
}

}  // namespace

MemoryPlan MemoryPlan::make(const Chain& chain, std::vector<LayerInterval> recomputed) {
    MemoryPlan plan{.recomputed = std::move(recomputed), .storage = {0}};
    // What enters a block is read again by its recomputation, so its first layer may not overwrite it.
    const auto begins_block = [&](std::size_t layer) {
        return std::ranges::any_of(plan.recomputed, [&](const LayerInterval& block) { return block.begin == layer; });
    };
    for (std::size_t layer = 0; layer < chain.layer_count(); ++layer) {
        const bool shares = may_share(chain, layer) && (chain.layer(layer).is_view() || !begins_block(layer));
        plan.storage.push_back(plan.storage.back() + (shares ? 0 : 1));
    }
    // Inside a block: the values that neither enter nor leave it, by their order there.
    std::vector<std::size_t> shared_values(plan.storage.back() + 1, SIZE_MAX);
    std::vector<std::size_t> shared_scratch(chain.layer_count(), SIZE_MAX);
    std::size_t most_values = 0, most_scratch = 0;
    for (const LayerInterval& block : plan.recomputed) {
        std::size_t inside = 0;
        for (std::size_t value = plan.storage[block.begin] + 1; value < plan.storage[block.end]; ++value) {
            shared_values[value] = inside++;
        }
        for (std::size_t layer = block.begin; layer < block.end; ++layer) {
            shared_scratch[layer] = layer - block.begin;
        }
        most_values = std::max(most_values, inside);
        most_scratch = std::max<std::size_t>(most_scratch, block.end - block.begin);
    }
    plan.memories = most_values;
    std::vector<std::size_t> memory_of;
    for (const std::size_t shared : shared_values) {
        memory_of.push_back(shared != SIZE_MAX ? shared : plan.memories++);
    }
    for (const std::size_t value : plan.storage) {
        plan.memory.push_back(memory_of[value]);
    }
    plan.scratches = most_scratch;
    for (const std::size_t shared : shared_scratch) {
        plan.scratch.push_back(shared != SIZE_MAX ? shared : plan.scratches++);
    }
    return plan;
}

std::vector<LayerInterval> recompute_blocks(const Chain& chain, std::uint32_t layers) {
    std::vector<LayerInterval> blocks;
    const auto end = static_cast<std::uint32_t>(chain.layer_count());
    std::uint32_t begin = 0;
    for (std::uint32_t layer = 1; layer < end && layers > 0; ++layer) {
        if (layer - begin >= layers && !may_share(chain, layer)) {
            blocks.push_back({begin, layer});
            begin = layer;
        }
    }
    return blocks;
}

}  // namespace causeway
