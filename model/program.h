// Programs: what one cell does in one round, as data. A flow compiles to a program (split/flow.h), the coordinator
// sends it, the trainer interprets it, the simulator charges time for it and the planner prices it. Overlap,
// recomputation, stashing and per-layer syncs are orders of instructions, not new trainers.
//
// The text form is canonical (one program, one text) and readable; it is what travels and what a person is shown:
//
//     repeat epochs {
//         repeat batches {
//             load
//             forward [0, 3)
//             loss
//             backward [0, 3)
//             step [0, 3)
//         }
//     }
//
// The counts of the repeats are not part of it: the node that runs the program fills them in from its data.
// Grammar, one instruction a line (blanks are free): `send PAYLOAD to CELL`, `recv PAYLOAD from CELL`,
// `gradient_final LAYER`, `sync SLOT RANGES`, `wait SLOT`, `step [a, b)` or `step RANGES`, `stash` or `stash PASSES`,
// `snapshot` or `snapshot SLOT RANGES`, `recompute [a, b)`, `deadline MILLISECONDS`; RANGES is
// `trainable [0, 10) [20, 30)`, PAYLOAD activations, gradients, labels or parameters.
//
// `repeat clients` stands inside a repeat over batches, at a cell that works for several others: the batch of each of
// them in turn, without those that have no batch of that number. CELL counts up with it: `from 2` is the first one's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"

namespace causeway {

class Chain;

enum class OpCode : std::uint8_t {
    load,            // the next batch: examples at boundary 0, and their labels
    forward,         // layers [a, b) on the oldest values that wait at boundary a
    loss,            // of the oldest values at the last boundary, and its gradient there
    backward,        // layers [a, b), oldest forward first; parameter gradients add up until the step
    send,            // the newest values of that kind to a cell
    receive,         // the next values of that kind from a cell (`recv` in the text)
    gradient_final,  // no later backward of this step adds to the layer's gradient: sync rules act here
    sync,            // start agreeing on a range set with the other replicas
    wait,            // for the sync of that slot
    step,            // the optimizer on layers [a, b) or on a range set; clears their gradients
    stash,           // keep the parameters that the forwards in flight have seen (weight stashing); with a number of
                     // passes: what follows in this pass over a batch is done so many passes later, on what the batch
                     // had and with the parameters that it went forward with; after the last pass, one after another
    snapshot,        // without operands: a place where the run may be kept and gone on from after a restart;
                     // with them: keep a copy of a range set, for the difference to it later
    recompute,       // layers [a, b) again on what they had: what their forward kept inside was given up meanwhile
    deadline,        // what follows, to the next deadline, must be over in so many milliseconds, or the run fails
    repeat,
};
constexpr std::size_t op_code_count = 15;
/// The word of the text form.
std::string_view to_string(OpCode code);

enum class RepeatOver : std::uint8_t { epochs, batches, clients, microbatches };
constexpr std::size_t repeat_over_count = 4;
std::string_view to_string(RepeatOver over);

enum class Payload : std::uint8_t { activations, gradients, labels, parameters };
std::string_view to_string(Payload payload);

/// Layers [begin, end) of a chain.
struct LayerInterval {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    bool operator==(const LayerInterval&) const = default;
    [[nodiscard]] bool empty() const { return begin == end; }
};

/// One instruction. Fields that its code does not use stay at their defaults.
struct Instruction {
    OpCode code = OpCode::load;
    LayerInterval layers;                    // forward, backward, recompute, step (empty: the ranges are meant)
    ArenaKind arena = ArenaKind::trainable;  // of `ranges`
    RangeSet ranges;                         // sync, snapshot, step
    std::uint32_t index = 0;                 // a cell, layer or slot, by code; deadline: milliseconds; stash: passes
    Payload payload = Payload::activations;  // send, recv
    RepeatOver over = RepeatOver::epochs;    // repeat
    std::vector<Instruction> body;           // repeat

    bool operator==(const Instruction&) const = default;
    /// Of the two forms of `snapshot`: the whole run's.
    [[nodiscard]] bool keeps_run() const { return code == OpCode::snapshot && ranges.empty(); }
};

Instruction make_forward(LayerInterval layers);
Instruction make_backward(LayerInterval layers);
Instruction make_step(LayerInterval layers);
Instruction make_recompute(LayerInterval layers);
Instruction make_stash(std::uint32_t passes);
Instruction make_repeat(RepeatOver over, std::vector<Instruction> body);

struct Program {
    std::vector<Instruction> instructions;
    bool operator==(const Program&) const = default;
};

// A program is shorter than this even for a planned schedule of hundreds of layers; a peer cannot make us hold more.
constexpr std::size_t max_program_text = 64 * 1024;
constexpr std::size_t max_program_instructions = 4096;
constexpr int max_program_depth = 4;  // repeats inside each other
constexpr std::size_t max_program_ranges = 4096;
constexpr std::uint32_t max_program_slots = 256;
constexpr std::uint32_t max_stashed_passes = 16;  // each has the memory of a batch, and of the parameters

/// The canonical text. parse_program(to_text(p)) == p for every program within the limits.
std::string to_text(const Program& program);
/// Total: any text gives a program or an error with its line.
///
/// errors  invalid: `program_syntax`, `program_limit`
Result<Program> parse_program(std::string_view text);

/// How often the program says it, repeats counted once: for refusals.
std::uint64_t count_instructions(const Program& program, OpCode code);

/// What a node fills in.
struct RepeatCounts {
    std::uint64_t epochs = 1;
    std::uint64_t batches = 1;
    std::uint64_t microbatches = 1;
    std::uint64_t clients = 1;
    [[nodiscard]] std::uint64_t of(RepeatOver over) const {
        return over == RepeatOver::epochs    ? epochs
               : over == RepeatOver::batches ? batches
               : over == RepeatOver::clients ? clients
                                             : microbatches;
    }
};
/// How often it is executed, for prices and progress.
std::uint64_t count_executions(const Program& program, OpCode code, const RepeatCounts& counts);

/// Whether the program makes sense on this chain: layers and ranges in bounds, and every instruction has what it
/// consumes (a forward its input, a loss its labels, a backward its forward, a step its gradients, a wait its sync),
/// when each repeat runs once or twice. Nothing that a forward keeps is left behind at the end.
///
/// errors  invalid: `program_bounds`, `program_order`, naming the instruction
/// cost    at most 2^3 visits of an instruction, each with the layers or tensors that it names
Status check_program(const Program& program, const Chain& chain);

struct ProgramFacts {
    std::uint32_t most_in_flight = 0;  // batches between their load and the end of their backward, in two walks
};

/// The blocks that it recomputes, in chain order: only one of them at a time needs memory for what its layers keep.
std::vector<LayerInterval> recomputed_blocks(const Program& program);
/// Whether it works for several other cells, a batch of each in turn.
bool works_for_clients(const Program& program);
/// How many passes a batch's second half waits; 0: it has none.
std::uint32_t stashed_passes(const Program& program);
/// Whether each load and receive is inside a repeat over microbatches: no more than one of these is ever here.
bool works_by_microbatch(const Program& program);
/// check_program, and what the walk learned.
Result<ProgramFacts> examine_program(const Program& program, const Chain& chain);

}  // namespace causeway
