// A training run under way, as it is at a `snapshot` of its program: enough to go on from there in another process.
//
// Nothing is in flight at such a place (the program's checker sees to that), and random choices are functions of the
// place, so the place, the sums so far, the model and the optimizer are all there is: a run that goes on ends with the
// bits of one that never stopped. Whoever keeps it must give the same job and the same examples again.
#pragma once

#include <array>

#include "common/bytes.h"
#include "model/arena.h"
#include "model/optimizer.h"
#include "model/program.h"

namespace causeway {

/// Sums over one run.
struct RunTotals {
    double epoch_loss = 0;             // sum over the examples of the current epoch
    std::uint64_t epoch_examples = 0;  // of the current epoch
    std::uint64_t examples = 0;
    std::uint64_t steps = 0;
    std::array<double, op_code_count> seconds{};
    bool operator==(const RunTotals&) const = default;
};

/// Where a run is: how often each repeat has gone round, and the next instruction of each list that it is in.
struct RunPlace {
    std::vector<std::uint32_t> next;
    std::uint64_t epoch = 0;
    std::uint64_t batch = 0;
    std::uint64_t microbatch = 0;
    bool operator==(const RunPlace&) const = default;
};

struct RunSnapshot {
    RunPlace place;
    RunTotals totals;
    ModelState model;  // packed, of the segment
    OptimizerState optimizer;
    bool operator==(const RunSnapshot&) const = default;
};

/// cost   a copy of all arrays
Bytes encode_run(const RunSnapshot& snapshot);
/// Total. Whether it fits a job is said when that job begins.
///
/// errors   corrupt `bad_run`
Result<RunSnapshot> decode_run(ByteView bytes);

}  // namespace causeway
