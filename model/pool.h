// Pools: the largest or the mean of each window of each channel. One implementation behind maxpool and avgpool.
#pragma once

#include "model/image.h"

namespace causeway {

enum class PoolRule { largest, mean };

/// `maxpool 2`: a window of 2x2 moved by 2; no padding unless the text says so.
Result<std::shared_ptr<const Layer>> parse_pool(const LayerKind& kind, PoolRule rule,
                                                std::span<const std::string> arguments);
/// One mean per channel of the whole image, as a row of features.
std::shared_ptr<const Layer> make_global_mean(std::string_view kind);

}  // namespace causeway
