// globalavgpool: the mean of each channel over the whole image, as a row of features.
#include "model/pool.h"

namespace causeway {
extern const LayerKind globalavgpool_layer;
namespace {

Result<std::shared_ptr<const Layer>> parse_globalavgpool(std::span<const std::string> arguments) {
    TRY(expect_arguments(globalavgpool_layer, arguments, 0));
    return make_global_mean(globalavgpool_layer.name);
}

}  // namespace

const LayerKind globalavgpool_layer{"globalavgpool", "globalavgpool", parse_globalavgpool};

}  // namespace causeway
