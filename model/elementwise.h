// Layers that work on every element by itself (activations): all of one but its name and its two operations.
//
// Any shape passes through unchanged, also a list of several tensors: each is worked on by itself.
#pragma once

#include "model/layer.h"

namespace causeway {

using ElementwiseOp = cw_op (*)(std::int64_t count);

/// `backward` takes ({x, dy, dx}), x the input of the forward run.
std::shared_ptr<const Layer> make_elementwise(std::string_view kind, ElementwiseOp forward, ElementwiseOp backward);

}  // namespace causeway
