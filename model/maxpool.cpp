// maxpool: the largest value of each window of each channel.
#include "model/pool.h"

namespace causeway {
extern const LayerKind maxpool_layer;
namespace {

Result<std::shared_ptr<const Layer>> parse_maxpool(std::span<const std::string> arguments) {
    return parse_pool(maxpool_layer, PoolRule::largest, arguments);
}

}  // namespace

const LayerKind maxpool_layer{"maxpool", "maxpool 2 [stride N] [pad N]", parse_maxpool};

}  // namespace causeway
