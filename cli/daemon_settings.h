// STATE/coordinator.toml and STATE/node.toml: what may change while a daemon runs (SIGHUP reads it again).
//
//   log_level = "debug"             # debug, info, warn, error; left out: what the command line says
//   certificate_lifetime = "90d"    # coordinator: of the certificates that are issued from now on
//   spool_quota = "64 GiB"          # coordinator: updates on their way into sums
//   state_quota = "500 GiB"         # coordinator: models and store; left out: as much as the disk has
//   cache_quota = "20 GiB"          # node: models, the one that comes included
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/stop_signal.h"
#include "client/node_limits.h"
#include "common/log.h"
#include "common/result.h"
#include "coordinator/daemon_limits.h"

namespace causeway::cli {

/// Whose file it is decides which keys it may have.
enum class DaemonKind { coordinator, node };

struct DaemonSettings {
    std::optional<LogLevel> log_level;
    std::int64_t certificate_lifetime_s = node_certificate_s;
    std::uint64_t spool_quota = default_spool_quota;
    std::uint64_t state_quota = 0;  // this and the next: 0: none is set
    std::uint64_t cache_quota = 0;
};

/// Whom the settings are for: one of them.
struct SettingsTarget {
    std::shared_ptr<DaemonLimits> coordinator{};
    std::shared_ptr<node::NodeLimits> node{};
};

/// The file of that name, or nothing set where there is none.
///
/// errors   invalid `bad_settings`: one line per mistake, with its place; io
[[nodiscard]] Result<DaemonSettings> load_settings(const std::filesystem::path& file, DaemonKind kind);

/// Puts the file into force now and at each SIGHUP; then a mistake in it is logged and changes nothing. The level of
/// the command line holds where the file says none.
///
/// The target follows the file. errors   as load_settings
[[nodiscard]] Status follow_settings(const std::filesystem::path& file, StopSignal& signal,
                                     const SettingsTarget& target);

}  // namespace causeway::cli
