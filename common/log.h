// Log lines on stderr: for people by default, one JSON object a line with --log-json. spdlog stays in log.cpp.
#pragma once

#include <string_view>

namespace causeway {

enum class LogLevel { debug, info, warn, error };
enum class LogFormat { human, json };

/// Called once by main, before any thread starts.
void start_log(LogLevel least, LogFormat format);

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
