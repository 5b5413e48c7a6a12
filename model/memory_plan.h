// Which boundaries of a chain have memory of their own: in-place layers and views share their input's, and recomputed
// blocks share the memory of one block, since only one of them at a time has what its layers keep.
//
// A function of the chain and the blocks alone: the workspace allocates by it, the footprint counts by it.
// Immutable; any thread.
#pragma once

#include <vector>

#include "model/chain.h"
#include "model/program.h"

namespace causeway {

struct MemoryPlan {
    std::vector<LayerInterval> recomputed;  // ascending, apart from each other
    std::vector<std::size_t> storage;       // per boundary: equal numbers are the same values under other shapes
    std::vector<std::size_t> memory;        // per boundary: which piece of memory holds it
    std::vector<std::size_t> scratch;       // per layer: which piece of scratch memory it has
    std::size_t memories = 0;
    std::size_t scratches = 0;

    static MemoryPlan make(const Chain& chain, std::vector<LayerInterval> recomputed);
};

/// Blocks of at least `layers` layers from the chain's start, each beginning where a layer neither overwrites its input
/// nor is a view of it. The last block is left out: its backward follows its forward at once.
std::vector<LayerInterval> recompute_blocks(const Chain& chain, std::uint32_t layers);

}  // namespace causeway
