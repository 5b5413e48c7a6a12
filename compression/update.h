// A client's contribution to a round as data: a list of parts, each the values of one tensor (or a slice of it).
//
// Whole models, single layers, fragments, masks and adapters are all lists of (arena, range set): nothing that
// handles updates knows layers. Values are f32 in memory, whatever a codec made of them on the wire.
#pragma once

#include <vector>

#include "kernels/tensor.h"

namespace causeway {

/// The values of one tensor's elements `ranges`, in ascending order.
///
/// shapes  values f32[ranges.element_count()]. `shape` is the tensor's own when all of it travels, [n] for a slice of
///         n elements; it is what the sender claims, and the firewall compares it with the table.
struct UpdatePart {
    ArenaKind arena = ArenaKind::trainable;
    RangeSet ranges;
    DType dtype = DType::f32;
    Shape shape;
    std::vector<float> values;
};

struct Update {
    std::vector<UpdatePart> parts;
};

}  // namespace causeway
