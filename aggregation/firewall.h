// The firewall: what an update must be before it touches the sum.
//
// It works from the tensor table and from what was asked for, never from the sender's words, and names what is wrong:
// a stable code, the tensor, and the index inside it. A refused update leaves no trace in the sum. Lease, round and
// staleness are the round machine's to check; everything about the content is checked here.
//
//   code              meaning (index: first element concerned, counted inside the tensor)
//   bad_weight        not an integer in [0, 2^29)
//   unexpected_range  values that nobody asked for, or outside every tensor
//   dtype             another element type than the table's
//   shape             another shape: `shape [1] != [4]`; nothing is ever broadcast
//   duplicate_range   a tensor twice
//   missing_range     asked for and not there
//   non_finite        NaN or infinity
//   out_of_range      |weight x value| x cohort >= 2^52: the exact sum could overflow
//   norm              the update's L2 norm is above the bound
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "compression/update_format.h"

namespace causeway {

/// Why an update was refused; the fields of the message `refused`.
struct Refusal {
    std::string code;
    std::string message;
    std::string tensor;       // empty when not about one
    std::uint64_t index = 0;  // element inside the tensor

    bool operator==(const Refusal&) const = default;
};

struct FirewallRules {
    ArenaRanges expected;                    // exactly this must come, part by part of a tensor
    std::uint32_t cohort = 1;                // members as drawn
    std::optional<double> norm_bound;        // of the model delta, L2 over all parts
    Fidelity fidelity = Fidelity::lossless;  // lossless: values are theta, the delta is against `start`
};

/// The reason to refuse, or nothing.
///
/// shapes   start[kind] f32[table.arena_size(kind)]; read only under a norm bound with lossless codecs
/// cost     reads the update once (twice under a norm bound)
/// threads  reentrant
std::optional<Refusal> check_update(const TensorTable& table, const FirewallRules& rules, const ArenaValues& start,
                                    const Update& update, std::int64_t weight);

}  // namespace causeway
