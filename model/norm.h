// Norms: layernorm and groupnorm, whose statistics are an example's own, and batchnorm, whose are the batch's.
#pragma once

#include "model/layer.h"

namespace causeway {

constexpr double norm_epsilon = 1e-5;      // PyTorch's default
constexpr double batch_norm_momentum = 0.1;  // PyTorch's default: the share of the newest batch

/// Over the last dimension of every place (groups 1, places apart), or over `groups` parts of the channels of a whole
/// example.
enum class NormSpan { place, example };
std::shared_ptr<const Layer> make_group_norm(std::string_view kind, NormSpan span, std::int64_t groups);

}  // namespace causeway
