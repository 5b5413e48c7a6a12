// layernorm: every place of an example is normalised over its channels (the last dimension). Source: Ba et al. 2016.
#include "model/norm.h"

namespace causeway {
extern const LayerKind layernorm_layer;
namespace {

Result<std::shared_ptr<const Layer>> parse_layernorm(std::span<const std::string> arguments) {
    TRY(expect_arguments(layernorm_layer, arguments, 0));
    return make_group_norm(layernorm_layer.name, NormSpan::place, 1);
}

}  // namespace

const LayerKind layernorm_layer{"layernorm", "layernorm", parse_layernorm};

}  // namespace causeway
