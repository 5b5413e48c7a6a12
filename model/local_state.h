// The tensors of a model that stay with their node (Exchange::local), between rounds: a section of its state.
//
// What training starts from is the round's model with the node's own tensors in it; what it leaves are the next ones.
// The two newest are kept, each with its round: a node evaluates the model of a round with its own tensors of that
// round, though its next round may be over by then, so that no figure depends on who was quick. Pure, any thread.
//
//   section := u32 count (1 or 2), state[count], newest first
//   state   := u32 round, f32[local trainable elements], f32[local buffers' elements]
#pragma once

#include "common/bytes.h"
#include "model/arena.h"
#include "model/chain.h"

namespace causeway {

constexpr std::string_view local_section = "local";

[[nodiscard]] bool has_local_tensors(const TensorTable& table);

/// Writes the node's own tensors into a model: the newest that are not of a later round than `round`, else the oldest.
///
/// errors   corrupt `bad_local_state`: a section of another model, or with NaN or infinity
Status put_local(const TensorTable& table, ByteView section, std::uint32_t round, ModelState& model);

/// The section after a round that has ended in this model; `before` is the one that it began with, or empty.
///
/// errors   corrupt `bad_local_state`: of `before`
Result<Bytes> keep_local(const TensorTable& table, ByteView before, std::uint32_t round, const ModelState& end);

}  // namespace causeway
