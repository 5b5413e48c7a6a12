// gelu: x * Phi(x) of every element, the exact form (PyTorch's default), not the tanh approximation.
#include "model/elementwise.h"

namespace causeway {
extern const LayerKind gelu_layer;
namespace {

Result<std::shared_ptr<const Layer>> parse_gelu(std::span<const std::string> arguments) {
    TRY(expect_arguments(gelu_layer, arguments, 0));
    return make_elementwise(gelu_layer.name, ops::gelu, ops::gelu_backward);
}

}  // namespace

const LayerKind gelu_layer{"gelu", "gelu", parse_gelu};

}  // namespace causeway
