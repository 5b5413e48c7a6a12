// avgpool: the mean value of each window of each channel.
#include "model/pool.h"

namespace causeway {
extern const LayerKind avgpool_layer;
namespace {

Result<std::shared_ptr<const Layer>> parse_avgpool(std::span<const std::string> arguments) {
    return parse_pool(avgpool_layer, PoolRule::mean, arguments);
}

}  // namespace

const LayerKind avgpool_layer{"avgpool", "avgpool 2 [stride N] [pad N]", parse_avgpool};

}  // namespace causeway
