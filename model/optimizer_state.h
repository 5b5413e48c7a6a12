// The bytes of an optimizer's state: what a client keeps between rounds and what a relay hands on with a segment.
//
//   state := u32 layers, u32 moments, u64 step[layers], f32[parameters] x moments
//
// threads  reentrant
#pragma once

#include "common/bytes.h"
#include "model/optimizer.h"

namespace causeway {

Bytes encode_optimizer_state(const OptimizerState& state);

/// Total. shapes  one step per layer of the chain, `parameters` values per moment
///
/// errors   corrupt `bad_optimizer_state`: of another optimizer or model, not finite, or of another length
Result<OptimizerState> decode_optimizer_state(ByteView bytes, const OptimizerSpec& optimizer, std::size_t layers,
                                              std::uint64_t parameters);

}  // namespace causeway
