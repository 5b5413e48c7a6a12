// How long this machine takes for each layer of a model, forward and backward: what a plan's compute times come from.
//
// A few batches of random numbers are trained with a program that names every layer by itself, and the clock is read
// before and after each instruction. Layers run alone here, so what fusing two of them gains is not seen; the median of
// several passes keeps other work on the machine out. Thread: the caller's, which is the trainer's meanwhile.
#pragma once

#include "common/result.h"
#include "common/time.h"
#include "model/optimizer.h"
#include "split/planner.h"

namespace causeway::cli {

/// Takes about `budget`, at least three passes.
///
/// errors   as Trainer::train
Result<LayerTimes> measure_layers(const Chain& chain, const OptimizerSpec& optimizer, std::uint32_t batch,
                                  Duration budget = std::chrono::milliseconds(500));

}  // namespace causeway::cli
