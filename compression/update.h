// A client's contribution to a round as data: a list of parts, each the values of one tensor (or a slice of it).
//
// Whole models, single layers, fragments, masks and adapters are all lists of (arena, range set): nothing that
// handles updates knows layers. Values are f32 in memory, whatever a codec made of them on the wire.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "common/shared_bytes.h"
#include "kernels/tensor.h"

namespace causeway {

/// Values of their own, or those that lie in the bytes of a whole update, which live as long as these: at the
/// coordinator an update of 100 MB is summed from where it arrived.
class PartValues {
public:
    PartValues() = default;
    PartValues(std::vector<float> own) : own_(std::move(own)) {}
    PartValues(std::initializer_list<float> own) : own_(own) {}
    /// `bytes` begin at an address that suits floats.
    explicit PartValues(SharedBytes bytes) : bytes_(std::move(bytes)) {}

    [[nodiscard]] std::span<const float> view() const {
        const auto raw = bytes_.view();
        return bytes_ ? std::span(reinterpret_cast<const float*>(raw.data()), raw.size() / sizeof(float))
                      : std::span(own_);
    }
    [[nodiscard]] std::size_t size() const { return view().size(); }
    [[nodiscard]] auto begin() const { return view().begin(); }
    [[nodiscard]] auto end() const { return view().end(); }
    float operator[](std::size_t i) const { return view()[i]; }
    /// To be filled or changed; a copy, where they lie in an update's bytes.
    [[nodiscard]] std::vector<float>& own() {
        if (bytes_) {
            own_.assign(begin(), end());
            bytes_ = {};
        }
        return own_;
    }
    bool operator==(const PartValues& other) const { return std::ranges::equal(view(), other.view()); }

private:
    std::vector<float> own_;
    SharedBytes bytes_;
};

/// The values of one tensor's elements `ranges`, in ascending order.
///
/// shapes  values f32[ranges.element_count()]. `shape` is the tensor's own when all of it travels, [n] for a slice of
///         n elements; it is what the sender claims, and the firewall compares it with the table.
struct UpdatePart {
    ArenaKind arena = ArenaKind::trainable;
    RangeSet ranges;
    DType dtype = DType::f32;
    Shape shape;
    PartValues values;
};

struct Update {
    std::vector<UpdatePart> parts;
};

}  // namespace causeway
