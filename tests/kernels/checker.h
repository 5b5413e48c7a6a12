// The checker: runs a case on a backend, holds it against the reference, and looks at bits, guards and time.
#pragma once

#include <optional>
#include <string>

#include "tests/kernels/cases.h"

namespace causeway::checker {

struct Verdict {
    std::string problem;      // empty: within tolerance, guards intact, inputs unchanged
    double worst_share = 0;   // the largest error as a share of its tolerance
    bool repeats = true;      // two runs give equal bits
    bool threads = true;      // 1 and 2 threads give equal bits
    bool split = true;        // the whole batch and the batch in two parts give equal bits, row by row
    bool sets = true;         // every instruction set of the streaming kernels gives equal bits
    bool packed = true;       // packed weights give the bits of plain ones
    bool declined = false;    // the processor lacks the instructions: nothing was looked at
};

/// Prepares and runs the op on copies of the operands; the results are the copies.
Result<Buffers> run(const Device& device, const Case& tested, const Buffers& operands);

/// Everything about one case on one backend.
Verdict check(std::string_view backend, const Case& tested, std::uint64_t seed);

/// The fastest of several runs, in seconds, with the operands warm.
Result<double> time_of(const Device& device, const Case& tested);

}  // namespace causeway::checker
