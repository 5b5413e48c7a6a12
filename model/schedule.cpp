// The shares. Pure, any thread.
#include "model/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway {
namespace {

constexpr std::array<std::string_view, 4> known_schedules = {"constant", "cosine", "step", "two-phase"};

}  // namespace

double Schedule::share(double t) const {
    const double rising = warmup > 0 ? std::min(1.0, t / warmup) : 1.0;
    switch (kind) {
        case ScheduleKind::constant:
            return rising;
        case ScheduleKind::cosine: {
            const double done = rounds > warmup ? std::clamp((t - warmup) / (rounds - warmup), 0.0, 1.0) : 0.0;
            return rising * (factor + (1 - factor) * 0.5 * (1 + std::cos(std::numbers::pi * done)));
        }
        case ScheduleKind::step:
            return rising * std::pow(factor, std::floor(t / every));
        case ScheduleKind::two_phase:
            return rising * (t < at ? 1.0 : factor);
    }
    return rising;
}

std::string_view to_string(ScheduleKind kind) {
    return known_schedules[static_cast<std::size_t>(kind)];
}

std::vector<std::string> schedule_names() {
    return {known_schedules.begin(), known_schedules.end()};
}

Result<ScheduleKind> parse_schedule_kind(std::string_view name) {
    const auto found = std::ranges::find(known_schedules, name);
    if (found != known_schedules.end()) {
        return static_cast<ScheduleKind>(found - known_schedules.begin());
    }
    const auto all = schedule_names();
    return fail(ErrorKind::invalid, "bad_optimizer",
                fmt::format("there is no schedule \"{}\"; {}", name.substr(0, 40), name_hint(name, all)));
}

}  // namespace causeway
