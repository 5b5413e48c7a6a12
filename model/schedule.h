// Schedules: the learning rate as a share of the optimizer's own, by how far the run has come.
//
// Time is counted in rounds, and inside a round in the share of its steps, so a schedule means the same with few long
// rounds and many short ones, and a node needs nothing but its assignment to know its rate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace causeway {

enum class ScheduleKind { constant, cosine, step, two_phase };

struct Schedule {
    ScheduleKind kind = ScheduleKind::constant;
    double warmup = 0;   // rounds in which the rate rises from 0, before and beneath every kind
    double rounds = 0;   // cosine: the length of the run
    double every = 1;    // step: rounds between two cuts
    double at = 0;       // two-phase: the round of the one cut
    double factor = 0;   // step, two-phase: what each cut leaves; cosine: the share at the end

    bool operator==(const Schedule&) const = default;
    /// The share of the learning rate at time t >= 0. Loshchilov and Hutter 2017 for the cosine.
    [[nodiscard]] double share(double t) const;
};

std::string_view to_string(ScheduleKind kind);
std::vector<std::string> schedule_names();
/// errors   invalid `bad_optimizer`: no such schedule
Result<ScheduleKind> parse_schedule_kind(std::string_view name);

}  // namespace causeway
