// spdlog to stderr. A log line is one write, so lines of several threads do not mix.
#include "common/log.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "common/json.h"
#include "common/printable.h"
#include "common/reader.h"

namespace causeway {
namespace {

LogFormat format = LogFormat::human;
bool journal = false;
std::atomic<LogLevel> least_level{LogLevel::info};

spdlog::logger& logger() {
    static const auto instance = spdlog::stderr_color_mt("causeway");
    return *instance;
}

spdlog::level::level_enum level_of(LogLevel level) {
    switch (level) {
        case LogLevel::debug:
            return spdlog::level::debug;
        case LogLevel::info:
            return spdlog::level::info;
        case LogLevel::warn:
            return spdlog::level::warn;
        case LogLevel::error:
            return spdlog::level::err;
    }
    return spdlog::level::err;
}

/// syslog's numbers, as the journal reads them at the start of a line. source: sd-daemon(3)
std::string_view priority_of(LogLevel level) {
    switch (level) {
        case LogLevel::debug:
            return "<7>";
        case LogLevel::info:
            return "<6>";
        case LogLevel::warn:
            return "<4>";
        case LogLevel::error:
            return "<3>";
    }
    return "<3>";
}

std::string as_json(LogLevel level, std::string_view who, std::string_view text) {
    const auto name = spdlog::level::to_string_view(level_of(level));
    return Json::object().set("level", std::string(name.data(), name.size())).set("who", who).set("text", text).dump();
}

/// Whoever's words a text holds, a line of the log is text. What comes in several lines (a list of mistakes) is set in,
/// so that no text can look like a line of its own.
std::string set_in(std::string_view text) {
    std::string whole;
    for (const char c : printable(text, Lines::many)) {
        whole += c == '\t' ? ' ' : c;
        whole += c == '\n' ? "    " : "";
    }
    return whole;
}

}  // namespace

void start_log(LogLevel least, LogFormat chosen) {
    format = chosen;
    journal = chosen == LogFormat::human && logs_to_journal();
    set_log_level(least);
    logger().set_pattern(chosen == LogFormat::json || journal ? "%v" : "%Y-%m-%d %H:%M:%S.%e %^%-5l%$ %v");
}

void set_log_level(LogLevel least) {
    least_level = least;
    logger().set_level(level_of(least));
}

LogLevel log_level() {
    return least_level;
}

bool logs_to_journal() {
    const auto* stream = std::getenv("JOURNAL_STREAM");
    struct stat own {};
    return stream != nullptr && ::fstat(STDERR_FILENO, &own) == 0 &&
           stream == std::to_string(own.st_dev) + ":" + std::to_string(own.st_ino);
}

void log_line(LogLevel level, std::string_view who, std::string_view text) {
    if (!logger().should_log(level_of(level)) || !takes_a_line(STDERR_FILENO)) {
        return;  // a line that would make its thread wait is lost: the link and the loop must go on
    }
    if (format == LogFormat::json) {
        logger().log(level_of(level), spdlog::string_view_t(as_json(level, who, text)));
    } else {
        const auto prefix = std::string(journal ? priority_of(level) : "");
        logger().log(level_of(level), spdlog::string_view_t(prefix + printable(who, Lines::one) + ": " + set_in(text)));
    }
}

}  // namespace causeway
