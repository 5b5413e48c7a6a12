// See time_window.h.
#include "client/time_window.h"

#include <array>
#include <ctime>
#include <optional>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway::node {
namespace {

constexpr std::uint32_t minutes_per_day = 24 * 60;
constexpr std::uint32_t days_per_week = 7;
constexpr std::array<std::string_view, days_per_week> day_names = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

std::optional<std::uint32_t> day_of(std::string_view name) {
    for (std::uint32_t day = 0; day < days_per_week; ++day) {
        if (day_names[day] == name) {
            return day;
        }
    }
    return std::nullopt;
}

/// "mon-fri", "sat,sun", "mon,wed-fri"; a range may pass the end of the week. nullopt: not days.
std::optional<std::uint8_t> days_of(std::string_view text) {
    std::uint32_t days = 0;
    for (const auto& part : split_text(text, ',')) {
        const auto dash = part.find('-');
        const auto first = day_of(std::string_view(part).substr(0, dash));
        const auto last = dash == std::string::npos ? first : day_of(std::string_view(part).substr(dash + 1));
        if (!first || !last) {
            return std::nullopt;
        }
        for (auto day = *first;; day = (day + 1) % days_per_week) {
            days |= 1U << day;
            if (day == *last) {
                break;
            }
        }
    }
    return static_cast<std::uint8_t>(days);
}

/// "06:30" in minutes; "24:00" is the end of the day. nullopt: not a time.
std::optional<std::uint32_t> minute_of(std::string_view text) {
    const auto digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
    if (text.size() != 5 || text[2] != ':' || !digit(0) || !digit(1) || !digit(3) || !digit(4)) {
        return std::nullopt;
    }
    const auto value = [&](std::size_t i) { return static_cast<std::uint32_t>(text[i] - '0'); };
    const auto minute = 10 * value(3) + value(4);
    const auto whole = 60 * (10 * value(0) + value(1)) + minute;
    return minute < 60 && whole <= minutes_per_day ? std::optional(whole) : std::nullopt;
}

}  // namespace

std::string LocalTime::text() const {
    return fmt::format("{} {:02}:{:02}", day_names[weekday % days_per_week], minute / 60, minute % 60);
}

LocalTime local_time(std::int64_t unix_s) {
    const auto now = static_cast<std::time_t>(unix_s);
    std::tm parts{};
    ::localtime_r(&now, &parts);
    const auto sunday_first = static_cast<std::uint32_t>(parts.tm_wday);
    return {(sunday_first + days_per_week - 1) % days_per_week,
            static_cast<std::uint32_t>(parts.tm_hour * 60 + parts.tm_min)};
}

/// After midnight the window that began on the day before may still be open.
bool TimeWindow::contains(const LocalTime& time) const {
    const auto open_on = [&](std::uint32_t day) { return (days >> (day % days_per_week) & 1U) != 0; };
    if (begin < end) {
        return open_on(time.weekday) && time.minute >= begin && time.minute < end;
    }
    return (open_on(time.weekday) && time.minute >= begin) ||
           (open_on(time.weekday + days_per_week - 1) && time.minute < end);
}

Result<TimeWindow> parse_time_window(std::string_view text) {
    TimeWindow window;
    auto times = trim(text);
    const auto space = times.rfind(' ');
    std::optional<std::uint8_t> days = window.days;
    if (space != std::string_view::npos) {
        days = days_of(trim(times.substr(0, space)));
        times = times.substr(space + 1);
    }
    const auto dash = times.find('-');
    const auto begin = minute_of(times.substr(0, dash));
    const auto end = dash == std::string_view::npos ? std::nullopt : minute_of(times.substr(dash + 1));
    if (!days || !begin || !end || *begin == minutes_per_day) {
        return fail(ErrorKind::invalid, "bad_hours",
                    fmt::format("\"{}\" is not a window of hours; write \"20:00-06:00\", \"mon-fri 08:00-18:00\" or "
                                "\"sat,sun 00:00-24:00\"",
                                text.substr(0, 80)));
    }
    if (*begin == *end) {
        return fail(ErrorKind::invalid, "bad_hours",
                    fmt::format("\"{}\" begins when it ends; a whole day is \"00:00-24:00\"", text.substr(0, 80)));
    }
    window.days = *days;
    window.begin = *begin;
    window.end = *end;
    return window;
}

}  // namespace causeway::node
