// The table of presets: every regime is a flow, a sync and a codec over one mesh, so a preset is nothing but TOML.
//
// To add one: give its line the TOML it stands for. A name without TOML is refused with "not available in this
// version", which tells a user more than "unknown".
#include "configs/presets.h"

#include <algorithm>

namespace causeway {

namespace {

// McMahan et al. 2017: whole models, a cohort per round, the mean weighted by examples. Momentum of one round has no
// meaning for the next one's model, hence the reset.
constexpr auto fedavg_toml = R"(
mesh = { stages = 1, replicas = "cohort" }
flow = { kind = "local-epochs" }
sync = { aggregator = "mean", cohort = "all" }
codec = { uplink = "dense", downlink = "dense" }
train = { optimizer_state = "reset" }
)";

}  // namespace

std::span<const Preset> all_presets() {
    static const std::vector<Preset> presets = {
        {"fedavg", "a cohort trains whole models for some local epochs; their mean is the next model", fedavg_toml},
        {"split", "clients before a cut layer, a host after it, one client at a time", ""},
        {"u-shaped", "split with the last layers back at the client, so labels stay there", ""},
        {"splitfed-v1", "split with all clients in parallel, a server segment each", ""},
        {"splitfed-v2", "split with all clients in parallel, one server segment", ""},
        {"gsfl", "groups of clients: relay inside a group, groups in parallel", ""},
        {"local-sgd", "islands that average after some inner steps", ""},
        {"diloco", "islands with an outer Nesterov optimizer", ""},
        {"streaming-diloco", "diloco that sends fragments while it trains", ""},
        {"partial-sync", "layers synchronised by a schedule hidden behind the backward pass", ""},
        {"async-sparse", "a few percent of the parameters exchanged each step, without waiting", ""},
        {"pipeline", "stages across sites with a micro-batch schedule", ""},
    };
    return presets;
}

const Preset* find_preset(std::string_view name) {
    const auto presets = all_presets();
    const auto found = std::find_if(presets.begin(), presets.end(), [&](const auto& p) { return p.name == name; });
    return found == presets.end() ? nullptr : &*found;
}

std::vector<std::string> available_presets() {
    std::vector<std::string> names;
    for (const auto& preset : all_presets()) {
        if (!preset.toml.empty()) {
            names.push_back(preset.name);
        }
    }
    return names;
}

}  // namespace causeway
