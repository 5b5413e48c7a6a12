// One assignment's work: model and examples in, the encoded update and the state that goes with it out.
//
// The node and the simulator both call this; it touches no file, socket or clock. Thread: the trainer's.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/state_folder.h"
#include "common/shared_bytes.h"
#include "configs/batches.h"

namespace causeway::node {

/// What training starts from.
struct TrainingStart {
    SharedBytes model;
    StateSections base;
    std::optional<KeptRun> run;  // of this round, from before a restart
};

/// What the texts of any assignment say, of a whole model's or of a cell's.
struct AssignedWork {
    Chain chain;
    Program program;
    OptimizerSpec optimizer;
    DataOptions data;
};
/// errors   invalid: a text is wrong, or the program does not fit the chain; unsupported: an instruction
Result<AssignedWork> parse_work(const Assign& assign);
/// A round's model with what this node keeps of it for itself (model/local_state.h), if it has worked on it before.
///
/// errors   corrupt: the model's bytes, or `bad_local_state`
Result<ModelState> start_of(const Chain& chain, ByteView model, const StateSections& base, std::uint32_t round);
/// Whether the device computes as the optimizer asks: `bf16` is what it says of computing in that.
Status check_compute(const AssignedWork& work, const Status& bf16);

struct TrainingInput {
    const Assign& assign;
    std::string node;  // its name: the key of its random choices
    ByteView model;    // the start model's safetensors
    const Dataset& dataset;
    const StateSections& base;  // of the experiment, from the state folder
    std::optional<RunSnapshot> resume{};
};

/// Names a training by all that decides its bits: assignment without its lease's attempt, node, examples, base state
/// and compute signature. Only a run of the same name may go on.
Digest training_digest(const TrainingInput& input, const Digest& dataset, std::string_view signature);

struct TrainingOutput {
    HeldUpdate held;
    StateSections sections;
    Bytes update;  // encoded; its SHA-256 is held.digest
    std::array<double, op_code_count> seconds{};  // of each instruction, by OpCode
};

/// Trains and encodes. `clock` gives the seconds of the metrics; empty: they stay 0.
///
/// errors   invalid: a text of the assignment is wrong, or the dataset does not fit; unsupported: an instruction, codec
///          or optimizer rule that this build lacks; refused `stopped`; corrupt: the model's bytes
Result<TrainingOutput> train_assignment(Trainer& trainer, const TrainingInput& input, const TrainingHooks& hooks,
                                        const std::function<Duration()>& clock);

/// The work of a round of statistics (configs/statistics.h): the exact sums of the examples' columns, as an update.
///
/// errors   invalid `out_of_range` (aggregation/column_sums.h), `no_examples`
Result<TrainingOutput> sum_columns(const Assign& assign, const Dataset& dataset,
                                   const std::function<Duration()>& clock);

/// Whether this build could do the work, without doing it: what a node answers before it fetches the model.
///
/// `bf16` is what the device says of computing in it.
///
/// errors   as train_assignment's invalid and unsupported, but for those about the examples
Status check_assignment(const Assign& assign, const Status& bf16);

}  // namespace causeway::node
