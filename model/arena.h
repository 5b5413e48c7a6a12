// The values of a model: three contiguous arrays of f32 in chain order, each a value with a version.
//
// Only the trainable arena has gradient and optimizer mirrors; buffers hold what layers observe (batch-norm
// statistics), frozen what nobody changes (the base under an adapter). A view is (offset, shape) into one of them and
// never a pointer, and arenas are passed to every call, so several versions of a model can live side by side.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/tensor.h"

namespace causeway {

struct Arena {
    ArenaKind kind = ArenaKind::trainable;
    std::uint64_t version = 0;  // rises whenever the values change; packed weights are kept by (tensor, version)
    std::vector<float> values;

    bool operator==(const Arena&) const = default;
    /// The part of one tensor of this arena.
    [[nodiscard]] std::span<const float> view(const TensorInfo& tensor) const {
        ASSERT(tensor.arena == kind && tensor.range().end <= values.size());
        return std::span(values).subspan(tensor.offset, tensor.range().size());
    }
    [[nodiscard]] std::span<float> view(const TensorInfo& tensor) {
        ASSERT(tensor.arena == kind && tensor.range().end <= values.size());
        return std::span(values).subspan(tensor.offset, tensor.range().size());
    }
};

struct ModelState {
    Arena trainable{ArenaKind::trainable, 0, {}};
    Arena buffers{ArenaKind::buffers, 0, {}};
    Arena frozen{ArenaKind::frozen, 0, {}};

    bool operator==(const ModelState&) const = default;

    /// Zeros of the sizes that the table asks for.
    static ModelState zeros(const TensorTable& table) {
        ModelState state;
        for (Arena* arena : {&state.trainable, &state.buffers, &state.frozen}) {
            arena->values.assign(table.arena_size(arena->kind), 0.0f);
        }
        return state;
    }
    [[nodiscard]] const Arena& arena(ArenaKind kind) const {
        return kind == ArenaKind::trainable ? trainable : kind == ArenaKind::buffers ? buffers : frozen;
    }
    [[nodiscard]] Arena& arena(ArenaKind kind) {
        return kind == ArenaKind::trainable ? trainable : kind == ArenaKind::buffers ? buffers : frozen;
    }
};

}  // namespace causeway
