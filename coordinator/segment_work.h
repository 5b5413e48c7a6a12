// The arithmetic of relays at the coordinator: cut a model into what client and host hold, judge what a turn has made
// of a part, and make one update of what a group has come to, which then enters the round's exact sum like any other.
//
// The daemon and the simulator both call this; it touches no file, socket or clock. threads  reentrant
#pragma once

#include <array>
#include <optional>
#include <string>

#include "configs/experiment.h"
#include "coordinator/round_work.h"
#include "model/optimizer.h"
#include "model/segment.h"

namespace causeway {

/// Which layers the two sides of a turn hold.
struct SegmentRules {
    Segment client;
    Segment host;
    OptimizerSpec optimizer;

    /// The side that an assignment names by its layers; nullptr: neither.
    [[nodiscard]] const Segment* find(const std::string& layers) const;
};

/// Nothing for regimes whose model is whole. errors: as split_plan_of
Result<std::optional<SegmentRules>> segment_rules_of(const Experiment& experiment, const Chain& chain);

/// The files of both segments of a round's start model, with fresh optimizers: client's, host's.
std::array<Bytes, 2> cut_segments(const SegmentRules& rules, const ModelState& start);

/// Why a turn's segment may not be handed on; nothing when it may. It is examined as the part of an update that it is.
std::optional<Refusal> check_segment(const SegmentRules& rules, const RoundInput& input, const std::string& layers,
                                     const HeldUpdate& offered, ByteView file);

/// A group's last segments as one update of the whole model, weighed by the group's examples.
///
/// errors   a Refusal: as decode_segment; `bad_weight`: more examples than a weight can be
tl::expected<CheckedUpdate, Refusal> group_update(const SegmentRules& rules, const RoundInput& input,
                                                  std::size_t group, const std::array<Bytes, 2>& files,
                                                  std::uint64_t examples);

}  // namespace causeway
