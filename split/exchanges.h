// What a program exchanges with other cells, and which flows have such programs.
//
// A node judges by this what it is asked to do (client/leaves.h): the name that a coordinator gives a regime says
// nothing about what leaves. Everything here is read from the program itself, and which flows it may be of from the
// registry: each flow is compiled for the same cuts, and its exchanges are compared. A new flow needs no line here.
// Pure, any thread.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "model/program.h"
#include "split/flow.h"

namespace causeway {

/// What goes into a cell and what comes out of it, whatever the order, the number and the cells' numbers.
struct Exchanges {
    bool loads = false;        // examples of its own, with their labels
    bool knows_loss = false;   // computes it
    bool for_clients = false;  // works for several other cells in turn
    std::set<Payload> sent;
    std::set<Payload> received;
    std::set<std::uint32_t> cells;  // that it sends to or receives from, the first where there are several in turn

    /// Neither sends nor receives.
    [[nodiscard]] bool alone() const { return sent.empty() && received.empty(); }
    /// But for the cells' numbers.
    [[nodiscard]] bool like(const Exchanges& other) const {
        return loads == other.loads && knows_loss == other.knows_loss && for_clients == other.for_clients &&
               sent == other.sent && received == other.received;
    }
};
Exchanges exchanges_of(const Program& program);

/// What the values that a program sends tell of the examples that it loads.
struct SentValues {
    bool raw_inputs = false;   // activations before any layer that learns: the inputs, or a fixed function of them
    bool bare_scores = false;  // gradients behind the last layer that learns, of a loss that is computed here: they
                               // tell each example's label
};
/// The program passes check_program on this chain.
///
/// cost    at most 2^4 visits of an instruction
SentValues sent_values_of(const Program& program, const Chain& chain);

/// The flows one of whose cells has such a program, in the registry's order; none: no flow of this build has. Options
/// of a flow (overlap, microbatches, recomputation, deadlines) change no exchange.
///
/// cost    compiles each flow once per stage
std::vector<const Flow*> flows_with(const Program& program, const Chain& chain);

}  // namespace causeway
