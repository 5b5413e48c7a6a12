// The two clocks, and durations as people write and read them.
#include "common/time.h"

#include <charconv>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

namespace causeway {
namespace {

struct Unit {
    std::string_view name;
    double seconds;
};
constexpr Unit units[] = {{"ms", 1e-3}, {"us", 1e-6}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
constexpr double longest_seconds = 100.0 * 365 * 86400;  // far above any use, far below what 63 bits of ns hold

Duration since_boot() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

const Duration process_start = since_boot();

}  // namespace

Instant real_now() {
    return since_boot() - process_start;
}

std::int64_t wall_clock_unix_s() {
    return std::time(nullptr);
}

double seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

Duration from_seconds(double value) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

Result<Duration> parse_duration(std::string_view text) {
    const auto wrong = [&] {
        return fail(ErrorKind::invalid, "bad_duration",
                    fmt::format("\"{}\" is not a duration: write a number and a unit: 250ms, 30s, 10m", text));
    };
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || !std::isfinite(value) || std::signbit(value)) {
        return wrong();
    }
    const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
    for (const auto& candidate : units) {
        if (candidate.name == unit && value * candidate.seconds <= longest_seconds) {
            return from_seconds(value * candidate.seconds);
        }
    }
    if (text == "0") {
        return Duration::zero();
    }
    return wrong();
}

std::string format_duration(Duration duration) {
    const double value = seconds(duration);
    if (value < 1) {
        return fmt::format("{:.0f}ms", value * 1e3);
    }
    if (value < 59.95) {
        const auto text = fmt::format("{:.1f}", value);
        return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + "s";
    }
    const auto whole = static_cast<long long>(std::llround(value));
    if (whole < 3600) {
        return whole % 60 == 0 ? fmt::format("{}m", whole / 60) : fmt::format("{}m {:02}s", whole / 60, whole % 60);
    }
    return fmt::format("{}h {:02}m", whole / 3600, whole % 3600 / 60);
}

}  // namespace causeway
