// What a program comes to on a cell, one thing after another: so long at work, then something sent or waited for.
//
// The trainer interprets a program on values; here the same walk is made on times, from a table of what each layer
// takes. The virtual world plays it on its clock, where cells wait for each other's messages and for a node's one
// trainer. Repeats, short last batches and passes that are put away are the interpreter's (model/interpreter.h).
// Pure, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "model/chain.h"
#include "model/program.h"

namespace causeway {

/// Seconds of the reference machine for one full batch.
struct LayerTimes {
    std::vector<double> forward;  // one per layer
    std::vector<double> backward;
    std::vector<double> step;  // the optimizer's
    double loss = 0;
};

/// The batch for which the times hold. Others take their share of them by examples, but for the optimizer's step.
struct LayerTable {
    LayerTimes times;
    std::uint32_t batch = 1;
};

/// Operations of one example's forward pass, roughly: a layer's weights at every place of what it gives, its values.
double arithmetic_of(const Chain& chain, std::size_t layer);
/// A machine that is not there: an example takes so long for all layers, each by its arithmetic, twice as long backward
/// as forward. Steps take no time.
LayerTable layers_by_arithmetic(const Chain& chain, double seconds_per_example);

struct CellAct {
    enum class Kind : std::uint8_t { work, send, receive };

    Kind kind = Kind::work;
    Payload payload = Payload::activations;  // of what is sent and received
    std::uint32_t cell = 0;                  // to or from it
    std::uint64_t bytes = 0;                 // sent
    double seconds = 0;                      // of work
};

/// What a node fills into a program.
struct CellData {
    std::uint64_t examples = 0;
    std::uint32_t batch = 0;  // 0: all at once
    std::uint32_t microbatch = 0;
    std::uint32_t local_epochs = 1;
    std::vector<std::uint64_t> clients{};  // examples of each, of a program that works for several cells
};

/// All of it in order; neighbouring works are one. The program fits the chain, and the table is of its layers.
///
/// cost    as many as count_executions says of sends and receives
std::vector<CellAct> acts_of(const Program& program, const Chain& chain, const LayerTable& table,
                             const CellData& data);

}  // namespace causeway
