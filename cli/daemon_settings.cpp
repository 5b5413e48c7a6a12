// See daemon_settings.h.
#include "cli/daemon_settings.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "common/file.h"
#include "common/text.h"
#include "common/time.h"
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

void read_lifetime(const TomlNode& node, DaemonSettings& settings, std::vector<ConfigError>& errors) {
    const auto span = node.kind == TomlNode::Kind::text
                          ? parse_duration(node.text)
                          : Result<Duration>(fail(
                                ErrorKind::invalid, "bad_duration",
                                "a duration is needed, as in \"90d\", this is " + std::string(describe(node.kind))));
    const auto whole = span ? static_cast<std::int64_t>(seconds(*span)) : 0;
    if (!span) {
        errors.push_back({node.place, "certificate_lifetime: " + span.error().message});
    } else if (whole < shortest_certificate_s || whole > longest_certificate_s) {
        errors.push_back({node.place, "certificate_lifetime: from 10s to 825d"});
    } else {
        settings.certificate_lifetime_s = whole;
    }
}

/// Below a megabyte no model of use would fit: more likely a unit was forgotten.
constexpr std::uint64_t least_quota = 1'000'000;

void read_quota(const TomlNode& node, std::string_view key, std::uint64_t& quota, std::vector<ConfigError>& errors) {
    const auto size = node.kind == TomlNode::Kind::text ? parse_size(node.text) : std::nullopt;
    if (!size || *size < least_quota) {
        errors.push_back(
            {node.place,
             fmt::format("{}: a size of 1 MB or more is needed, as in \"20 GiB\"{}", key,
                         node.kind == TomlNode::Kind::text ? "" : ", this is " + std::string(describe(node.kind)))});
        return;
    }
    quota = *size;
}

void put_into_force(const DaemonSettings& settings, LogLevel otherwise, const SettingsTarget& target) {
    set_log_level(settings.log_level.value_or(otherwise));
    if (target.coordinator) {
        target.coordinator->certificate_lifetime_s = settings.certificate_lifetime_s;
        target.coordinator->spool_quota = settings.spool_quota;
        target.coordinator->state_quota = settings.state_quota;
    }
    if (target.node) {
        target.node->cache_quota = settings.cache_quota;
    }
}

}  // namespace

Result<DaemonSettings> load_settings(const std::filesystem::path& file, DaemonKind kind) {
    const auto bytes = read_file(file, longest_settings);
    if (!bytes) {
        return bytes.error().kind == ErrorKind::not_found ? Result<DaemonSettings>(DaemonSettings{})
                                                          : fail(bytes.error());
    }
    using Read = void (*)(const TomlNode&, DaemonSettings&, std::vector<ConfigError>&);
    std::vector<std::pair<std::string, Read>> keys = {{"log_level", read_level}};
    if (kind == DaemonKind::coordinator) {
        keys.emplace_back("certificate_lifetime", read_lifetime);
        keys.emplace_back("spool_quota", [](const TomlNode& node, DaemonSettings& settings, auto& errors) {
            read_quota(node, "spool_quota", settings.spool_quota, errors);
        });
        keys.emplace_back("state_quota", [](const TomlNode& node, DaemonSettings& settings, auto& errors) {
            read_quota(node, "state_quota", settings.state_quota, errors);
        });
    } else {
        keys.emplace_back("cache_quota", [](const TomlNode& node, DaemonSettings& settings, auto& errors) {
            read_quota(node, "cache_quota", settings.cache_quota, errors);
        });
    }
    auto parsed = parse_toml(as_text(*bytes), file.string());
    DaemonSettings settings;
    for (const auto& member : parsed.root.members) {
        const auto known = std::ranges::find(keys, member.name, &std::pair<std::string, Read>::first);
        if (known != keys.end()) {
            known->second(member.value, settings, parsed.errors);
            continue;
        }
        std::vector<std::string> names;
        std::ranges::transform(keys, std::back_inserter(names), [](const auto& key) { return key.first; });
        parsed.errors.push_back({member.place, unknown_name("key", member.name.substr(0, 80), names)});
    }
    if (!parsed.errors.empty()) {
        return fail(ErrorKind::invalid, "bad_settings", to_text(parsed.errors));
    }
    return settings;
}

Status follow_settings(const std::filesystem::path& file, StopSignal& signal, const SettingsTarget& target) {
    const auto otherwise = log_level();
    const auto kind = target.coordinator ? DaemonKind::coordinator : DaemonKind::node;
    TRY_ASSIGN(const auto settings, load_settings(file, kind));
    put_into_force(settings, otherwise, target);
    signal.on_hangup([file, otherwise, kind, target] {
        const auto changed = load_settings(file, kind);
        if (!changed) {
            log_error("service", "reload: " + changed.error().message + " (nothing was changed)");
            return;
        }
        put_into_force(*changed, otherwise, target);
        log_info("service", fmt::format("reloaded {}", file.string()));
    });
    return {};
}

}  // namespace causeway::cli
