// See segment_memory.h.
#include "split/segment_memory.h"

#include <fmt/format.h>

#include "common/text.h"

namespace causeway {

SegmentMemory segment_memory(const Chain& chain, const std::vector<LayerInterval>& layers, std::uint64_t moments) {
    constexpr std::uint64_t value_bytes = sizeof(float);
    SegmentMemory memory;
    for (const auto& part : layers) {
        std::uint64_t elements = 0;
        for (const auto kind : {ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen}) {
            elements += chain.arena_range(kind, part.begin, part.end).size();
        }
        memory.fixed += value_bytes * elements * (2 * (1 + moments) + 1);
        memory.once += copies_of_a_turn * value_bytes * elements * (1 + moments);
        for (std::size_t at = part.begin; at <= part.end; ++at) {
            for (const auto& tensor : chain.boundary(at)) {
                memory.per_row += 2 * value_bytes * static_cast<std::uint64_t>(element_count(tensor.shape));
            }
        }
    }
    return memory;
}

std::string to_text(const SegmentMemory& memory, std::size_t groups, std::uint64_t rows) {
    return fmt::format(
        "{} group{} of {} (segment and optimizer state twice, gradients, values of a batch of {}) and {} once (a "
        "turn's segment as it comes and goes)",
        groups, groups == 1 ? "" : "s", format_bytes(memory.of(rows)), rows, format_bytes(memory.once));
}

}  // namespace causeway
