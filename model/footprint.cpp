// Sums over the chain. Scratch sizes come from plans on the reference backend, which prepares without work.
#include "model/footprint.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "common/text.h"
#include "model/memory_plan.h"

namespace causeway {
namespace {

constexpr std::uint64_t f32_bytes = sizeof(float);

std::uint64_t boundary_bytes(const Chain& chain, std::size_t boundary, std::int64_t batch) {
    return static_cast<std::uint64_t>(batch_elements(chain.boundary(boundary), batch)) * f32_bytes;
}

/// 1234567 as "1,234,567".
std::string with_commas(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (auto place = std::ssize(digits) - 3; place > 0; place -= 3) {
        digits.insert(static_cast<std::size_t>(place), 1, ',');
    }
    return digits;
}

}  // namespace

Result<Footprint> footprint_of(const Chain& chain, const OptimizerSpec& optimizer, std::int64_t rows,
                               std::vector<LayerInterval> recomputed) {
    const auto size = [&](ArenaKind kind) { return chain.table().arena_size(kind); };
    Footprint found{.parameters = size(ArenaKind::trainable), .buffers = size(ArenaKind::buffers)};
    found.weight_bytes = f32_bytes * (found.parameters + found.buffers + size(ArenaKind::frozen));
    found.gradient_bytes = f32_bytes * found.parameters;
    found.optimizer_bytes = f32_bytes * found.parameters * optimizer.kind->moments(optimizer);
    TRY_ASSIGN(auto device, Device::open("reference"));
    PlanCache plans(std::move(device));
    const MemoryPlan memory = MemoryPlan::make(chain, std::move(recomputed));
    std::vector<std::uint64_t> values(memory.memories), scratch(memory.scratches);
    std::uint64_t largest = 0, temporary = 0;
    for (std::size_t boundary = 0; boundary <= chain.layer_count(); ++boundary) {
        const std::uint64_t bytes = boundary_bytes(chain, boundary, rows);
        largest = std::max(largest, bytes);
        values[memory.memory[boundary]] = std::max(values[memory.memory[boundary]], bytes);
    }
    for (std::size_t layer = 0; layer < chain.layer_count(); ++layer) {
        TRY_ASSIGN(const auto plan, chain.layer(layer).prepare(plans, chain.boundary(layer), rows, Purpose::training));
        scratch[memory.scratch[layer]] = std::max(scratch[memory.scratch[layer]], plan->scratch_bytes());
        temporary = std::max(temporary, plan->temporary_bytes());
    }
    found.activation_bytes = std::accumulate(scratch.begin(), scratch.end(),
                                             std::accumulate(values.begin(), values.end(), 2 * largest + temporary));
    return found;
}

std::string to_text(const Footprint& found, std::int64_t rows) {
    return fmt::format(
        "{} parameters; with a batch of {}: weights {}, gradients {}, optimizer {}, activations {}, {} in all",
        with_commas(found.parameters), rows, format_bytes(found.weight_bytes), format_bytes(found.gradient_bytes),
        format_bytes(found.optimizer_bytes), format_bytes(found.activation_bytes), format_bytes(found.total_bytes()));
}

}  // namespace causeway
