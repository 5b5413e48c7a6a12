// spdlog to stderr. A log line is one write, so lines of several threads do not mix.
#include "common/log.h"

#include <unistd.h>

#include <string>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "common/json.h"
#include "common/reader.h"

namespace causeway {
namespace {

LogFormat format = LogFormat::human;

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

std::string as_json(LogLevel level, std::string_view who, std::string_view text) {
    const auto name = spdlog::level::to_string_view(level_of(level));
    return Json::object().set("level", std::string(name.data(), name.size())).set("who", who).set("text", text).dump();
}

}  // namespace

void start_log(LogLevel least, LogFormat chosen) {
    format = chosen;
    logger().set_level(level_of(least));
    logger().set_pattern(chosen == LogFormat::json ? "%v" : "%Y-%m-%d %H:%M:%S.%e %^%-5l%$ %v");
}

void log_line(LogLevel level, std::string_view who, std::string_view text) {
    if (!logger().should_log(level_of(level)) || !takes_a_line(STDERR_FILENO)) {
        return;  // a line that would make its thread wait is lost: the link and the loop must go on
    }
    if (format == LogFormat::json) {
        logger().log(level_of(level), spdlog::string_view_t(as_json(level, who, text)));
    } else {
        logger().log(level_of(level), spdlog::string_view_t(std::string(who) + ": " + std::string(text)));
    }
}

}  // namespace causeway
