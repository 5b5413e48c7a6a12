// The first values of a model, from the seed alone: made once by the coordinator and distributed.
#pragma once

#include <cstdint>

#include "model/arena.h"
#include "model/chain.h"

namespace causeway {

/// Parameters by their layers' rules: dense as PyTorch's Linear, weight and bias from U(-1/sqrt(inputs),
/// 1/sqrt(inputs)).
/// The numbers of layer l are the stream (seed, "initialise", layer l), its tensors one after the other in table order,
/// so they depend on neither backend, thread count nor the other layers.
///
/// cost     8 bytes of randomness a parameter, single-threaded
ModelState initial_model(const Chain& chain, std::uint64_t seed);

}  // namespace causeway
