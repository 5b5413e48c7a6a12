// What a tensor is, without its values: dtype, shape, and its place in one of a model's three arenas.
//
// Round, commit, firewall and aggregation code knows this table and nothing of layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/range_set.h"

namespace causeway {

enum class DType : std::uint8_t { f32 = 0, i64 = 1, u8 = 2 };
std::string_view to_string(DType dtype);

using Shape = std::vector<std::int64_t>;
/// The product of the dimensions; 1 for a scalar.
std::int64_t element_count(const Shape& shape);
/// "[16, 3, 3, 1]"
std::string to_string(const Shape& shape);

enum class ArenaKind : std::uint8_t { trainable = 0, buffers = 1, frozen = 2 };
std::string_view to_string(ArenaKind kind);

/// Whether a tensor is agreed on with others, or each node keeps its own, which never leaves it.
enum class Exchange : std::uint8_t { shared, local };

struct TensorInfo {
    std::string name;          // "dense1.weight"
    DType dtype = DType::f32;
    Shape shape;
    std::uint32_t layer = 0;   // index in the chain
    ArenaKind arena = ArenaKind::trainable;
    std::uint64_t offset = 0;  // elements, in its arena
    Exchange exchange = Exchange::shared;

    bool operator==(const TensorInfo&) const = default;
    [[nodiscard]] Range range() const {
        return {offset, offset + static_cast<std::uint64_t>(element_count(shape))};
    }
};

/// All tensors in chain order.
struct TensorTable {
    std::vector<TensorInfo> tensors;

    bool operator==(const TensorTable&) const = default;
    /// Elements of one arena.
    [[nodiscard]] std::uint64_t arena_size(ArenaKind kind) const;
    /// The tensor that holds this element, or nullptr.
    [[nodiscard]] const TensorInfo* at(ArenaKind kind, std::uint64_t element) const;
    [[nodiscard]] const TensorInfo* find(std::string_view name) const;
    /// The elements of one arena that are exchanged so.
    [[nodiscard]] RangeSet ranges(ArenaKind kind, Exchange exchange) const;
};

}  // namespace causeway
