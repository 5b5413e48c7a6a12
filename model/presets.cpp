// The presets. Thread: any.
#include "model/presets.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway {

std::span<const ModelPreset> model_presets() {
    static const std::vector<ModelPreset> presets = {
        {"linear", "one dense layer: linear regression with mean-squared-error", {"flatten"}},
        {"logistic", "one dense layer: logistic regression with cross-entropy", {"flatten"}},
        {"mlp", "two hidden layers of 256 and 128", {"flatten", "dense 256", "relu", "dense 128", "relu"}},
        {"cnn-small",
         "two convolutions and a hidden layer, for small images",
         {"conv 16 3x3", "relu", "maxpool 2", "conv 32 3x3", "relu", "maxpool 2", "flatten", "dense 64", "relu"}},
        // He et al. 2016 with the stem of its CIFAR networks: no first pool, stride 1.
        {"resnet-18",
         "a residual network of 18 layers, for images of 32x32",
         {"conv 64 3x3 nobias", "batchnorm", "relu", "residual 64", "residual 64", "residual 128 stride 2",
          "residual 128", "residual 256 stride 2", "residual 256", "residual 512 stride 2", "residual 512",
          "globalavgpool"}},
    };
    return presets;
}

Result<std::optional<std::vector<std::string>>> expand_preset(std::string_view text) {
    const std::string trimmed(trim(text));
    const auto space = trimmed.find(' ');
    const std::string_view name = std::string_view(trimmed).substr(0, space);
    const auto presets = model_presets();
    const auto found = std::ranges::find(presets, name, &ModelPreset::name);
    if (found == presets.end()) {
        return std::optional<std::vector<std::string>>{};
    }
    const std::string outputs(space == std::string::npos ? std::string_view{}
                                                         : trim(std::string_view(trimmed).substr(space)));
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(outputs.data(), outputs.data() + outputs.size(), count);
    if (error != std::errc{} || end != outputs.data() + outputs.size() || count < 1) {
        return fail(ErrorKind::invalid, "bad_layer",
                    fmt::format("the preset {} needs the number of its outputs: write \"{} 10\"", name, name));
    }
    auto layers = found->layers;
    layers.push_back(fmt::format("dense {}", count));
    return std::optional(std::move(layers));
}

}  // namespace causeway
