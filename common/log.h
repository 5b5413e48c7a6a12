// Log lines on stderr: for people by default, one JSON object a line with --log-json. spdlog stays in log.cpp.
//
// Where stderr is the systemd journal (JOURNAL_STREAM names it), lines carry the priority that the journal reads
// (`<4>`) and neither time nor colour: the journal has both.
#pragma once

#include <string_view>

namespace causeway {

enum class LogLevel { debug, info, warn, error };
enum class LogFormat { human, json };

/// Called once by main, before any thread starts.
void start_log(LogLevel least, LogFormat format);
/// The least level from now on. threads  thread-safe
void set_log_level(LogLevel least);
/// The present one.
[[nodiscard]] LogLevel log_level();
/// Whether stderr is the stream that JOURNAL_STREAM (device:inode) names. source: systemd.exec(5)
[[nodiscard]] bool logs_to_journal();

/// threads  thread-safe. `who` is the part that speaks ("coordinator", "link"): a stable word.
void log_line(LogLevel level, std::string_view who, std::string_view text);
inline void log_debug(std::string_view who, std::string_view text) {
    log_line(LogLevel::debug, who, text);
}
inline void log_info(std::string_view who, std::string_view text) {
    log_line(LogLevel::info, who, text);
}
inline void log_warn(std::string_view who, std::string_view text) {
    log_line(LogLevel::warn, who, text);
}
inline void log_error(std::string_view who, std::string_view text) {
    log_line(LogLevel::error, who, text);
}

}  // namespace causeway
