// A segment between two turns: the parameters, buffers and optimizer state of the layers that one node holds.
//
//   file   := "CWSE" u16 1, text layers, arena[3], u64 size, state[size]
//   arena  := u64 count, f32[count]                trainable, buffers, frozen: packed, in chain order
//   state  := as model/optimizer_state.h           size 0: a fresh one
//
// Little-endian. A segment is named by the SHA-256 of its file and verified against it where it is read. Equal segments
// have equal bytes, so the digests of hand-overs do not depend on who wrote them.
// threads  reentrant
#pragma once

#include <optional>

#include "common/bytes.h"
#include "model/optimizer.h"
#include "model/segment.h"

namespace causeway {

struct SegmentState {
    ModelState model;  // packed
    std::optional<OptimizerState> optimizer;
};

/// cost   one allocation of the file's size
Bytes encode_segment(const Segment& segment, const SegmentState& state);

/// Total: any bytes give a segment of exactly these layers, or a named error. What is finite is the firewall's to say,
/// but for the optimizer's state, which no firewall sees.
///
/// errors   corrupt `bad_segment`: not a segment, of other layers, or of other sizes; as decode_optimizer_state
/// cost     memory of the segment, whatever the bytes claim
Result<SegmentState> decode_segment(const Segment& segment, const OptimizerSpec& optimizer, std::size_t layers,
                                    ByteView bytes);

}  // namespace causeway
