// Layers that work on every element by itself (activations): all of one but its name and its two operations.
//
// Any shape passes through unchanged, also a list of several tensors: each is worked on by itself.
#pragma once

#include "model/layer.h"

namespace causeway {

using ElementwiseOp = cw_op (*)(std::int64_t count);

/// What the backward operation, which takes ({x, dy, dx}), accepts for x: the forward run's input alone, or its output
/// as well; then the layer may run in place.
enum class BackwardTakes { input, input_or_output };
std::shared_ptr<const Layer> make_elementwise(std::string_view kind, ElementwiseOp forward, ElementwiseOp backward,
                                              BackwardTakes takes = BackwardTakes::input);

}  // namespace causeway
