// Presets: names for whole regimes. A preset is TOML that fills in the tables [mesh] [flow] [sync] [codec] before the
// file's own values are read over it; nothing later asks which preset it was. Constant data, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace causeway {

struct Preset {
    std::string name;
    std::string doc;
    std::string toml;  // empty: known to the design, not available in this version
};

[[nodiscard]] std::span<const Preset> all_presets();
/// nullptr when there is none of that name.
[[nodiscard]] const Preset* find_preset(std::string_view name);
/// The names that a file may use today.
[[nodiscard]] std::vector<std::string> available_presets();
/// The flow that a preset stands for; empty: none of that name, or not available in this version.
[[nodiscard]] std::string flow_of_preset(std::string_view name);
/// Those that stand for this flow, in the table's order.
[[nodiscard]] std::vector<std::string> presets_with_flow(std::string_view flow);

}  // namespace causeway
