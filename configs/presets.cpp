// The table of presets: every regime is a flow, a sync and a codec over one mesh, so a preset is nothing but TOML.
//
// To add one: give its line the TOML it stands for. A name without TOML is refused with "not available in this
// version", which tells a user more than "unknown".
#include "configs/presets.h"

#include <algorithm>

#include "configs/toml_text.h"

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

// A sync of a split regime is the mean of both segments over the replicas; a relay's own order is not a sync. Momentum
// goes with the segments from client to client and starts anew with each round, as in fedavg.
constexpr auto split_toml = R"(
mesh = { stages = 2, replicas = "one" }
flow = { kind = "split" }
sync = { aggregator = "mean", cohort = "all" }
codec = { uplink = "dense", downlink = "dense" }
train = { optimizer_state = "reset" }
)";

// Vepakomma et al. 2018, the configuration without label sharing.
constexpr auto u_shaped_toml = R"(
mesh = { stages = 3, replicas = "one" }
flow = { kind = "u-shaped" }
sync = { aggregator = "mean", cohort = "all" }
codec = { uplink = "dense", downlink = "dense" }
train = { optimizer_state = "reset" }
)";

// Thapa et al. 2022: every client has a server segment of its own.
constexpr auto splitfed_v1_toml = R"(
mesh = { stages = 2, replicas = "cohort" }
flow = { kind = "split" }
sync = { aggregator = "mean", cohort = "all" }
codec = { uplink = "dense", downlink = "dense" }
train = { optimizer_state = "reset" }
)";

// Thapa et al. 2022: one server segment for all clients, which takes their batches in one order.
constexpr auto splitfed_v2_toml = R"(
mesh = { stages = 2, replicas = "cohort" }
flow = { kind = "batch-major" }
sync = { aggregator = "mean", cohort = "all" }
codec = { uplink = "dense", downlink = "dense" }
train = { optimizer_state = "reset" }
)";

// Zhang et al. 2023: groups between the two.
constexpr auto gsfl_toml = R"(
mesh = { stages = 2, replicas = "groups" }
flow = { kind = "split" }
sync = { aggregator = "mean", cohort = "all" }
codec = { uplink = "dense", downlink = "dense" }
train = { optimizer_state = "reset" }
)";

}  // namespace

std::span<const Preset> all_presets() {
    static const std::vector<Preset> presets = {
        {"fedavg", "a cohort trains whole models for some local epochs; their mean is the next model", fedavg_toml},
        {"split", "clients before a cut layer, a host after it, one client at a time", split_toml},
        {"u-shaped", "split with the last layers back at the client, so labels stay there", u_shaped_toml},
        {"splitfed-v1", "split with all clients in parallel, a server segment each", splitfed_v1_toml},
        {"splitfed-v2", "split with all clients in parallel, one server segment", splitfed_v2_toml},
        {"gsfl", "groups of clients: relay inside a group, groups in parallel", gsfl_toml},
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

std::string flow_of_preset(std::string_view name) {
    const auto* preset = find_preset(name);
    if (preset == nullptr || preset->toml.empty()) {
        return "";
    }
    const auto tables = parse_preset_toml(preset->toml, preset->name);
    const auto* flow = tables.find("flow");
    const auto* kind = flow == nullptr ? nullptr : flow->find("kind");
    return kind == nullptr ? "" : kind->text;
}

std::vector<std::string> presets_with_flow(std::string_view flow) {
    std::vector<std::string> names;
    for (const auto& name : available_presets()) {
        if (flow_of_preset(name) == flow) {
            names.push_back(name);
        }
    }
    return names;
}

}  // namespace causeway
