// STATE/coordinator.toml and STATE/node.toml: what may change while a daemon runs (SIGHUP reads it again).
//
//   log_level = "debug"             # debug, info, warn, error; left out: what the command line says
//   certificate_lifetime = "90d"    # coordinator: of the certificates that are issued from now on
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/stop_signal.h"
#include "common/log.h"
#include "common/result.h"
#include "coordinator/daemon_limits.h"

namespace causeway::cli {

/// Whose file it is decides which keys it may have.
enum class DaemonKind { coordinator, node };

struct DaemonSettings {
    std::optional<LogLevel> log_level;
    std::int64_t certificate_lifetime_s = node_certificate_s;
};

/// The file of that name, or nothing set where there is none.
///
/// errors   invalid `bad_settings`: one line per mistake, with its place; io
[[nodiscard]] Result<DaemonSettings> load_settings(const std::filesystem::path& file, DaemonKind kind);

/// Puts the file into force now and at each SIGHUP; then a mistake in it is logged and changes nothing. The level of
/// the command line holds where the file says none.
///
/// `limits` follow the file; none for a node. errors   as load_settings
[[nodiscard]] Status follow_settings(const std::filesystem::path& file, StopSignal& signal,
                                     const std::shared_ptr<DaemonLimits>& limits);

}  // namespace causeway::cli
