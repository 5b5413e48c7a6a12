// Texts in, texts out: a layer says all of itself in its text, and is made anew from another one.
#include "model/batch_norm_rule.h"

#include <algorithm>

#include <fmt/format.h>

namespace causeway {
namespace {

constexpr std::int64_t most_groups = 32;    // Wu and He 2018
constexpr std::int64_t least_channels = 4;  // of a group: a mean of fewer values follows them too closely

}  // namespace

Result<BatchNormRule> parse_batch_norm_rule(std::string_view text) {
    if (text == "average") {
        return BatchNormRule::average;
    }
    if (text == "local") {
        return BatchNormRule::local;
    }
    if (text == "group") {
        return BatchNormRule::group;
    }
    return fail(ErrorKind::invalid, "bad_batch_norm",
                fmt::format("batch_norm \"{}\": average, local or group", text.substr(0, 40)));
}

std::int64_t groups_for(std::int64_t channels) {
    std::int64_t best = 1;
    for (std::int64_t groups = 1; groups <= std::min(most_groups, channels / least_channels); ++groups) {
        best = channels % groups == 0 ? groups : best;
    }
    return best;
}

Result<std::shared_ptr<const Layer>> with_batch_norm_rule(std::shared_ptr<const Layer> layer, const Boundary& input,
                                                          BatchNormRule rule) {
    const std::string text = layer->text();
    const bool block = layer->kind() == "residual" && text.find("groupnorm") == std::string::npos;
    if (rule == BatchNormRule::average || text.ends_with(" local") || (layer->kind() != "batchnorm" && !block)) {
        return layer;
    }
    if (rule == BatchNormRule::local) {
        return parse_layer(text + " local");
    }
    TRY_ASSIGN(const Boundary output, layer->infer(input));
    const std::int64_t groups = groups_for(output.front().shape.back());
    return parse_layer(fmt::format("{}groupnorm {}", block ? text + " " : "", groups));
}

}  // namespace causeway
