// STATE/coordinator.toml and STATE/node.toml: what may change while a daemon runs (SIGHUP reads it again).
//
//   log_level = "debug"    # debug, info, warn, error; left out: what the command line says
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/stop_signal.h"
#include "common/log.h"
#include "common/result.h"

namespace causeway::cli {

struct DaemonSettings {
    std::optional<LogLevel> log_level;
};

/// The file of that name, or nothing set where there is none.
///
/// errors   invalid `bad_settings`: one line per mistake, with its place; io
[[nodiscard]] Result<DaemonSettings> load_settings(const std::filesystem::path& file);

/// Puts the file into force now and at each SIGHUP; then a mistake in it is logged and changes nothing. The level of
/// the command line holds where the file says none.
///
/// errors   as load_settings
[[nodiscard]] Status follow_settings(const std::filesystem::path& file, StopSignal& signal);

}  // namespace causeway::cli
