// The hours in which a node works: windows of local time, as its admin writes them ("mon-fri 20:00-06:00").
//
// A window may cross midnight; it belongs to the day on which it begins. The time comes in, so that a test can be at
// any hour. Pure, but for local_time(), which asks the system for its time zone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace causeway::node {

struct LocalTime {
    std::uint32_t weekday = 0;  // 0 is Monday
    std::uint32_t minute = 0;   // of the day
    bool operator==(const LocalTime&) const = default;
    /// "tue 14:05"
    [[nodiscard]] std::string text() const;
};
/// The machine's own time zone.
[[nodiscard]] LocalTime local_time(std::int64_t unix_s);

struct TimeWindow {
    std::uint8_t days = 0x7f;  // bit 0 is Monday
    std::uint32_t begin = 0;   // minutes of the day
    std::uint32_t end = 1440;  // not included; at or before `begin`: of the next day
    bool operator==(const TimeWindow&) const = default;
    [[nodiscard]] bool contains(const LocalTime& time) const;
};
/// "20:00-06:00", "mon-fri 08:00-18:00", "sat,sun 00:00-24:00".
/// errors   invalid `bad_hours`
[[nodiscard]] Result<TimeWindow> parse_time_window(std::string_view text);

}  // namespace causeway::node
