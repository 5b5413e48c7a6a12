// See daemon_settings.h.
#include "cli/daemon_settings.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "common/file.h"
#include "configs/checks.h"
#include "configs/toml_text.h"

namespace causeway::cli {
namespace {

constexpr std::size_t longest_settings = 64 * 1024;
constexpr std::array<std::pair<std::string_view, LogLevel>, 4> levels = {
    {{"debug", LogLevel::debug}, {"info", LogLevel::info}, {"warn", LogLevel::warn}, {"error", LogLevel::error}}};

void read_level(const TomlNode& node, DaemonSettings& settings, std::vector<ConfigError>& errors) {
    std::vector<std::string> known;
    for (const auto& [name, level] : levels) {
        known.emplace_back(name);
        if (node.kind == TomlNode::Kind::text && node.text == name) {
            settings.log_level = level;
        }
    }
    if (node.kind != TomlNode::Kind::text) {
        errors.push_back({node.place, fmt::format("log_level: a text is needed, this is {}", describe(node.kind))});
    } else if (!settings.log_level) {
        errors.push_back({node.place, "log_level: " + unknown_name("level", node.text.substr(0, 80), known)});
    }
}

}  // namespace

Result<DaemonSettings> load_settings(const std::filesystem::path& file) {
    const auto bytes = read_file(file, longest_settings);
    if (!bytes) {
        return bytes.error().kind == ErrorKind::not_found ? Result<DaemonSettings>(DaemonSettings{})
                                                          : fail(bytes.error());
    }
    auto parsed = parse_toml(as_text(*bytes), file.string());
    DaemonSettings settings;
    for (const auto& member : parsed.root.members) {
        if (member.name == "log_level") {
            read_level(member.value, settings, parsed.errors);
        } else {
            parsed.errors.push_back({member.place, unknown_name("key", member.name.substr(0, 80), {"log_level"})});
        }
    }
    if (!parsed.errors.empty()) {
        return fail(ErrorKind::invalid, "bad_settings", to_text(parsed.errors));
    }
    return settings;
}

Status follow_settings(const std::filesystem::path& file, StopSignal& signal) {
    const auto otherwise = log_level();
    TRY_ASSIGN(const auto settings, load_settings(file));
    set_log_level(settings.log_level.value_or(otherwise));
    signal.on_hangup([file, otherwise] {
        const auto changed = load_settings(file);
        if (!changed) {
            log_error("service", "reload: " + changed.error().message + " (nothing was changed)");
            return;
        }
        set_log_level(changed->log_level.value_or(otherwise));
        log_info("service", fmt::format("reloaded {}", file.string()));
    });
    return {};
}

}  // namespace causeway::cli
