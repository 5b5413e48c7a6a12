// What one group's segment takes at the node that trains it: what a host plans with, and refuses beyond.
//
// Values and optimizer state are there twice, for the turn under way begins again from the last hand-over when its
// client is lost; gradients once; and of one batch the values and gradients at every boundary. Beside all groups one
// turn at a time is unpacked or packed: the file that came, its values, the values that were trained, the file that
// goes. It is the cost model's host memory (cost_model.h) for any layers. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/chain.h"
#include "model/program.h"

namespace causeway {

/// Of a segment with its optimizer state, while a turn begins or ends: once, however many groups.
constexpr std::uint64_t copies_of_a_turn = 4;

struct SegmentMemory {
    std::uint64_t fixed = 0;    // bytes, whatever a batch's size
    std::uint64_t per_row = 0;  // and for each example of a batch
    std::uint64_t once = 0;     // bytes, however many groups

    /// Of one group, without what is needed once.
    [[nodiscard]] std::uint64_t of(std::uint64_t rows) const { return fixed + per_row * rows; }
};

/// moments  arrays of the size of the parameters that the optimizer keeps
SegmentMemory segment_memory(const Chain& chain, const std::vector<LayerInterval>& layers, std::uint64_t moments);

/// "3 groups of 1.2 MB (segment and optimizer state twice, gradients, values of a batch of 32) and 1.6 MB once (a
/// turn's segment as it comes and goes)"
std::string to_text(const SegmentMemory& memory, std::size_t groups, std::uint64_t rows);

}  // namespace causeway
