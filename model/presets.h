// Models by name: one text in a list of layers that stands for many ("resnet-18 10").
//
// A preset is nothing but layers: the architecture that travels, and that decides a model's digest, is written out.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace causeway {

struct ModelPreset {
    std::string_view name;
    std::string_view doc;
    std::vector<std::string> layers;  // before the last one, which is "dense OUTPUTS"
};

std::span<const ModelPreset> model_presets();

/// The layers that a text stands for; empty when it names no preset.
///
/// errors   invalid `bad_layer`: a preset without the number of its outputs
Result<std::optional<std::vector<std::string>>> expand_preset(std::string_view text);

}  // namespace causeway
