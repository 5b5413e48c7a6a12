// Named kinds of failure, and plans of them: when, where and for how long follows from a seed.
//
//   loss               connections are lost, control and bulk
//   corruption         a record or a chunk is damaged on the way: its channel closes with an error
//   partition          several clients cannot reach the coordinator for a while, all of them at times
//   asymmetric         one direction of a link lets nothing through
//   slow               links and trainings are several times slower for a while
//   crash-coordinator  the coordinator dies between any two effects and comes back
//   crash-client       a client does
//   store              power cuts that lose what was not flushed, on either side; transactions that take long
//   skew               clocks that run fast or slow and jump ahead
//   stop               a process is stopped and goes on (SIGSTOP, SIGCONT)
//   lying              clients say what is stale, forged or not theirs to say, and hand out damaged updates
//   disk               a disk is full for a while, on either side
//   coordinator-stalls the coordinator stands still for longer than any deadline, and goes on
//
// All of it is over by the end of the plan's time: from then on the world is healed, and whatever still runs must end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "simulation/world.h"

namespace causeway::simulation {

enum class Fault {
    loss,
    corruption,
    partition,
    asymmetric,
    slow,
    crash_coordinator,
    crash_client,
    store,
    skew,
    stop,
    lying,
    disk,
    coordinator_stalls,
};

/// In the order of the enumeration, as written on the command line.
const std::vector<std::string>& fault_names();
/// "none", "all", or names joined by commas. errors: invalid `unknown_fault`
Result<std::vector<Fault>> parse_faults(std::string_view text);

struct FaultPlan {
    std::vector<Fault> kinds;
    std::uint64_t seed = 0;
    std::uint32_t count = 8;                              // failures in all
    Duration time = std::chrono::seconds(40);             // they begin and end within it, from now
    Duration longest_absence = std::chrono::seconds(15);  // of a link, a process, a disk
};

/// Plans them in the world, before or while it runs. Lying clients' work is wrapped by the caller (lies.h).
void plan_faults(World& world, const FaultPlan& plan);

/// One client lies where lying is among the kinds, and forges this share of its updates.
constexpr std::size_t liar = 0;
constexpr double forged_share = 0.3;
[[nodiscard]] bool lies(const std::vector<Fault>& kinds, std::size_t client);

}  // namespace causeway::simulation
