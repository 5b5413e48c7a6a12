// Sums over the chain. Scratch sizes come from plans on the reference backend, which prepares without work.
#include "model/footprint.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.h"
#include "model/workspace.h"

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
        digits.insert(static_cast<std::size_t>(place), ",");
    }
    return digits;
}

}  // namespace

Result<Footprint> footprint_of(const Chain& chain, const OptimizerSpec& optimizer, std::int64_t batch) {
    const auto size = [&](ArenaKind kind) { return chain.table().arena_size(kind); };
    Footprint found{.parameters = size(ArenaKind::trainable), .buffers = size(ArenaKind::buffers)};
    found.weight_bytes = f32_bytes * (found.parameters + found.buffers + size(ArenaKind::frozen));
    found.gradient_bytes = f32_bytes * found.parameters;
    found.optimizer_bytes = f32_bytes * found.parameters * optimizer.kind->moments(optimizer);
    TRY_ASSIGN(auto device, Device::open("reference"));
    PlanCache plans(std::move(device));
    std::uint64_t largest = boundary_bytes(chain, 0, batch);
    found.activation_bytes = largest;
    std::uint64_t temporary = 0;
    for (std::size_t layer = 0; layer < chain.layer_count(); ++layer) {
        const std::uint64_t output = boundary_bytes(chain, layer + 1, batch);
        largest = std::max(largest, output);
        found.activation_bytes += Workspace::shares_memory(chain, layer) ? 0 : output;
        TRY_ASSIGN(const auto plan,
                   chain.layer(layer).prepare(plans, chain.boundary(layer), batch, Purpose::training));
        found.activation_bytes += plan->scratch_bytes();
        temporary = std::max(temporary, plan->temporary_bytes());
    }
    found.activation_bytes += 2 * largest + temporary;
    return found;
}

std::string to_text(const Footprint& found, std::int64_t batch) {
    return fmt::format(
        "{} parameters; with a batch of {}: weights {}, gradients {}, optimizer {}, activations {}, {} in all",
        with_commas(found.parameters), batch, format_bytes(found.weight_bytes), format_bytes(found.gradient_bytes),
        format_bytes(found.optimizer_bytes), format_bytes(found.activation_bytes), format_bytes(found.total_bytes()));
}

}  // namespace causeway
