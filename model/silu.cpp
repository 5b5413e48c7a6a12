// silu: x * sigmoid(x) of every element.
#include "model/elementwise.h"

namespace causeway {
extern const LayerKind silu_layer;
namespace {

Result<std::shared_ptr<const Layer>> parse_silu(std::span<const std::string> arguments) {
    TRY(expect_arguments(silu_layer, arguments, 0));
    return make_elementwise(silu_layer.name, ops::silu, ops::silu_backward);
}

}  // namespace

const LayerKind silu_layer{"silu", "silu", parse_silu};

}  // namespace causeway
