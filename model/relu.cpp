// relu: max(x, 0) of every element.
#include "model/elementwise.h"

namespace causeway {
extern const LayerKind relu_layer;
namespace {

Result<std::shared_ptr<const Layer>> parse_relu(std::span<const std::string> arguments) {
    TRY(expect_arguments(relu_layer, arguments, 0));
    return make_elementwise(relu_layer.name, ops::relu, ops::relu_backward, BackwardTakes::input_or_output);
}

}  // namespace

const LayerKind relu_layer{"relu", "relu", parse_relu};

}  // namespace causeway
