// The tensor table: shapes, offsets, and which tensor an element of an arena belongs to.
//
// A table has tens to thousands of tensors and is asked rarely (an error message, a codec's plan): linear search.
// Thread: any; reentrant.
#include "kernels/tensor.h"

#include <algorithm>

namespace causeway {

std::string_view to_string(DType dtype) {
    switch (dtype) {
        case DType::f32: return "f32";
        case DType::i64: return "i64";
        case DType::u8: return "u8";
    }
    return "unknown";  // a number from elsewhere that no reader has checked
}

std::int64_t element_count(const Shape& shape) {
    std::int64_t count = 1;
    for (const auto dimension : shape) {
        count *= dimension;
    }
    return count;
}

std::string to_string(const Shape& shape) {
    std::string text = "[";
    for (const auto dimension : shape) {
        text += (text.size() > 1 ? ", " : "") + std::to_string(dimension);
    }
    return text + "]";
}

std::string_view to_string(ArenaKind kind) {
    switch (kind) {
        case ArenaKind::trainable: return "trainable";
        case ArenaKind::buffers: return "buffers";
        case ArenaKind::frozen: return "frozen";
    }
    return "unknown";
}

std::uint64_t TensorTable::arena_size(ArenaKind kind) const {
    std::uint64_t end = 0;
    for (const auto& tensor : tensors) {
        if (tensor.arena == kind) {
            end = std::max(end, tensor.range().end);
        }
    }
    return end;
}

const TensorInfo* TensorTable::at(ArenaKind kind, std::uint64_t element) const {
    const auto found = std::ranges::find_if(tensors, [&](const TensorInfo& tensor) {
        const auto range = tensor.range();
        return tensor.arena == kind && element >= range.begin && element < range.end;
    });
    return found == tensors.end() ? nullptr : &*found;
}

const TensorInfo* TensorTable::find(std::string_view name) const {
    const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
    return found == tensors.end() ? nullptr : &*found;
}

RangeSet TensorTable::ranges(ArenaKind kind, Exchange exchange) const {
    std::vector<Range> found;
    for (const auto& tensor : tensors) {
        if (tensor.arena == kind && tensor.exchange == exchange && tensor.range().size() > 0) {
            found.push_back(tensor.range());
        }
    }
    auto made = RangeSet::make(std::move(found), arena_size(kind));
    ASSERT(made.has_value());
    return *std::move(made);
}

}  // namespace causeway
