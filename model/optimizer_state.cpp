// See optimizer_state.h. The counts of the file are compared with what the reader expects before anything is sized by
// them.
#include "model/optimizer_state.h"

#include <algorithm>
#include <cmath>

namespace causeway {
namespace {

auto bad_optimizer_state(const char* why) {
    return fail(ErrorKind::corrupt, "bad_optimizer_state", std::string("the optimizer's state ") + why);
}

}  // namespace

Bytes encode_optimizer_state(const OptimizerState& state) {
    ByteWriter writer;
    writer.put(static_cast<std::uint32_t>(state.steps.size()));
    writer.put(static_cast<std::uint32_t>(state.moments.size()));
    writer.put_bytes(std::as_bytes(std::span(state.steps)));
    for (const auto& moment : state.moments) {
        writer.put_bytes(std::as_bytes(std::span(moment)));
    }
    return writer.take();
}

Result<OptimizerState> decode_optimizer_state(ByteView bytes, const OptimizerSpec& optimizer, std::size_t layers,
                                              std::uint64_t parameters) {
    auto state = OptimizerState::fresh(optimizer, layers, parameters);
    ByteReader reader(bytes);
    TRY_ASSIGN(const auto stored_layers, reader.get<std::uint32_t>());
    TRY_ASSIGN(const auto moments, reader.get<std::uint32_t>());
    if (stored_layers != state.steps.size() || moments != state.moments.size()) {
        return bad_optimizer_state("is of another optimizer or model");
    }
    const auto fill = [&reader](auto& values) -> Status {
        const auto target = std::as_writable_bytes(std::span(values));
        TRY_ASSIGN(const auto raw, reader.get_bytes(target.size()));
        std::ranges::copy(raw, target.begin());
        return {};
    };
    TRY(fill(state.steps));
    for (auto& moment : state.moments) {
        TRY(fill(moment));
        if (!std::ranges::all_of(moment, [](float value) { return std::isfinite(value); })) {
            return bad_optimizer_state("holds NaN or infinity");
        }
    }
    if (reader.left() != 0) {
        return bad_optimizer_state("is longer than its model asks for");
    }
    return state;
}

}  // namespace causeway
