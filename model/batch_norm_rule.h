// What becomes of batch norm in a federation: the three rules of `model.batch_norm`.
//
// A rule is carried out when a chain is made: it rewrites the layers that do not say it themselves, so that the
// architecture's text is all that nodes, checkpoints and replays need to know. `batchnorm local` keeps scale, shift and
// statistics where they were learned (Li et al. 2021, FedBN); `groupnorm` has no statistics to disagree about (Hsieh et
// al. 2020). Pure, any thread.
#pragma once

#include <memory>

#include "model/layer.h"

namespace causeway {

enum class BatchNormRule {
    average,  // as written: all of it travels, statistics are averaged like weights
    local,    // scale, shift and statistics stay with each node
    group,    // group norms instead
};
/// errors   invalid `bad_batch_norm`
Result<BatchNormRule> parse_batch_norm_rule(std::string_view text);

/// Groups for so many channels: as many as divide them, at most 32, of at least 4 channels each where there are 4.
std::int64_t groups_for(std::int64_t channels);

/// A batchnorm, or a residual block with some, under this rule; any other layer, and one that says `local` or names its
/// norm, as it is.
Result<std::shared_ptr<const Layer>> with_batch_norm_rule(std::shared_ptr<const Layer> layer, const Boundary& input,
                                                          BatchNormRule rule);

}  // namespace causeway
