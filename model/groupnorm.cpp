// groupnorm G: each of G parts of the channels is normalised over a whole example. Source: Wu and He 2018.
//
// No statistic outlives a batch, so it is the norm to choose where clients' data differ much.
#include "model/norm.h"

namespace causeway {
extern const LayerKind groupnorm_layer;
namespace {

Result<std::shared_ptr<const Layer>> parse_groupnorm(std::span<const std::string> arguments) {
    TRY(expect_arguments(groupnorm_layer, arguments, 1));
    TRY_ASSIGN(const auto groups, parse_extent(groupnorm_layer, arguments[0], 1, 1 << 20));
    return make_group_norm(groupnorm_layer.name, NormSpan::example, groups);
}

}  // namespace

const LayerKind groupnorm_layer{"groupnorm", "groupnorm GROUPS", parse_groupnorm};

}  // namespace causeway
