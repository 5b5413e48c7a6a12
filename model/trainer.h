// The trainer: runs a program on a chain, from a start model to an end model, and evaluates models.
//
// It knows no files, sockets or clocks: examples, progress and the wish to stop go through an interface of the caller,
// time through a function of the caller. What it keeps from one call to the next is only what is prepared: device
// memory and plans, per batch size. Equal jobs and examples on equal compute signatures give equal bits.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "common/time.h"
#include "model/arena.h"
#include "model/chain.h"
#include "model/optimizer.h"
#include "model/program.h"
#include "model/run_snapshot.h"
#include "model/segment.h"

namespace causeway {

/// Which examples of an epoch's order are wanted: positions [first, first + rows).
struct BatchPlace {
    std::uint64_t epoch = 0;
    std::uint64_t batch = 0;
    std::uint64_t first = 0;
    std::uint64_t rows = 0;
};

/// What one cell sends another: a batch's values or gradients at a boundary, or its labels.
struct CellMessage {
    Payload payload = Payload::activations;
    std::uint64_t epoch = 0;  // where the sender's repeats are, so that a receiver can tell what it got
    std::uint64_t batch = 0;
    std::uint64_t microbatch = 0;
    std::uint64_t rows = 0;
    std::vector<float> values;         // f32[rows, boundary...]; of labels f32[rows, outputs] where they are numbers
    std::vector<std::int64_t> labels;  // i64[rows] where they are classes; empty for the others
};

/// The caller's side. Called on the trainer's thread.
class TrainerIo {
public:
    virtual ~TrainerIo() = default;
    /// The same number during a call of the trainer.
    [[nodiscard]] virtual std::uint64_t examples() const = 0;
    /// Writes examples in the epoch's order (the caller shuffles).
    ///
    /// shapes   features f32[rows, input...], labels i64[rows]
    virtual Status load(const BatchPlace& place, std::span<float> features, std::span<std::int64_t> labels) = 0;
    /// The same where the loss wants numbers (Chain::loss().numeric()). A caller that only has classes gives each as a
    /// number, for a model with one output.
    ///
    /// shapes   features f32[rows, input...], targets f32[rows, outputs]
    /// errors   invalid `no_targets`: several outputs, and only one label an example
    virtual Status load_targets(const BatchPlace& place, std::span<float> features, std::span<float> targets);
    /// After each batch's loss, or its step where another cell knows the loss (then 0): `step` of `steps`, its mean.
    virtual void progress(std::uint64_t /*step*/, std::uint64_t /*steps*/, double /*loss*/) {}
    /// Asked before each batch, and before each wait.
    [[nodiscard]] virtual bool stop_requested() const { return false; }
    /// Asked at each `snapshot` of the program: whether the run is to be kept now, at the cost of a copy.
    [[nodiscard]] virtual bool wants_snapshot() { return false; }
    /// What it is then given. Keeping it may fail; the run goes on.
    virtual void keep(RunSnapshot /*snapshot*/) {}
    /// Hands the message on, at once or when there is room: the trainer does not wait.
    virtual Status send(std::uint32_t cell, CellMessage message);
    /// The oldest message of that kind from the cell, or nothing yet. errors: of the link, or a message out of place
    virtual Result<std::optional<CellMessage>> receive(std::uint32_t cell, Payload payload);
};

/// A layer's parameters and gradient, in device memory; `range` is their place in the trainable arena.
struct LayerGradient {
    std::uint32_t layer;
    Range range;
    Operand parameters;
    Operand gradient;
    PlanCache& plans;  // for the arithmetic
};

/// What a sync rule does inside local training (FedProx's pull, SCAFFOLD's correction), at gradient_final instructions.
class GradientHook {
public:
    virtual ~GradientHook() = default;
    /// May change the gradient. Called once per gradient_final of a layer that has parameters.
    virtual Status gradient_final(const LayerGradient& gradient) = 0;
};

/// Another cell whose batches this one works on, in turn with others' (`repeat clients` of the program).
struct JobClient {
    std::uint64_t examples = 0;
    std::uint64_t node = 0;  // key of its random choices
};

struct TrainJob {
    Program program;
    Chain chain;
    std::vector<LayerInterval> segment;  // the layers that this node holds; empty: all
    ModelState start;                    // packed, of the segment
    OptimizerSpec optimizer;
    std::optional<OptimizerState> optimizer_state;  // empty: a fresh one
    std::uint32_t batch = 0;                        // examples; 0: all of them in one batch
    std::uint32_t local_epochs = 1;
    Draws draws;                   // seed, round and node; step and row are filled in
    std::vector<JobClient> clients{};  // in their order; empty: the program has no repeat over them
    std::uint32_t microbatch = 0;  // examples at once, for programs that repeat over microbatches; 0: the batch's
    std::optional<RunSnapshot> resume;  // of the same job and examples: the run goes on there instead of at its start
    GradientHook* hook = nullptr;
    std::function<Duration()> clock;  // empty: no times are taken, and no deadline passes
};

struct TrainResult {
    ModelState end;  // packed, of the segment
    OptimizerState optimizer_state;
    double loss = 0;                              // mean over the examples of the last local epoch; 0 without examples
    std::uint64_t examples = 0;                   // seen, epochs counted
    std::uint64_t steps = 0;                      // batches whose loss was computed
    std::array<double, op_code_count> seconds{};  // by OpCode, repeats without their bodies' share
};

struct Evaluation {
    double loss = 0;      // mean
    double accuracy = 0;  // share of examples whose largest score is their label's; 0 where the loss does not count
    std::uint64_t examples = 0;
};

/// What a model says of a batch of examples.
///
/// shapes   scores f32[rows, classes], finite; labels i64[rows] as the caller's load wrote them, empty where the
///          loss wants numbers
using ScoresSink =
    std::function<Status(const BatchPlace& place, std::span<const float> scores, std::span<const std::int64_t> labels)>;

class Workspace;
class Trainer;

/// A job under way. It runs as far as it can and says when it waits for another cell, so one trainer thread serves
/// many jobs in turn (a host's groups) and a simulation runs all cells of a mesh in one thread.
///
/// threads  bound to its trainer's; the trainer and `io` outlive it
class TrainingRun {
    struct Parts;

public:
    enum class State { waiting, finished };

    explicit TrainingRun(std::unique_ptr<Parts> parts);
    TrainingRun(TrainingRun&&) noexcept;
    TrainingRun& operator=(TrainingRun&&) noexcept;
    ~TrainingRun();

    /// Until the program ends or a receive finds nothing. Calling it again goes on there.
    ///
    /// errors   as Trainer::train; the run is over then
    Result<State> advance();
    /// Once, after advance() has said finished.
    Result<TrainResult> result();

private:
    friend class Trainer;
    std::unique_ptr<Parts> parts_;
};

/// threads  thread-bound: the one trainer thread of a process
class Trainer {
public:
    explicit Trainer(Device device);
    Trainer(Trainer&&) noexcept;
    Trainer& operator=(Trainer&&) noexcept;
    ~Trainer();

    [[nodiscard]] const Device& device() const;

    /// Begins a job; nothing of its program has run yet.
    ///
    /// errors   as train
    Result<TrainingRun> begin(TrainJob job, TrainerIo& io);
    /// Runs the program once, all of it: for programs that wait for no other cell. Without examples the end is the
    /// start.
    ///
    /// errors   invalid: the program does not fit the chain, a state does not, a label is out of range, no epochs;
    ///          `snapshot_mismatch`: `resume` is not of this job;
    ///          unsupported `program_unsupported`: an instruction that this trainer does not run, named;
    ///          unsupported `kernel_unsupported`: bf16 on a processor without it;
    ///          invalid `program_waits`: train met a receive whose message was not there;
    ///          refused `stopped`: the caller asked for it; timed_out `step_deadline`; overloaded: no memory; what the
    ///          caller's load returned
    /// cost     device memory: parameters x (2 + moments) and the boundaries' values for one batch, 4 bytes each
    Result<TrainResult> train(TrainJob job, TrainerIo& io);

    /// In batches of `batch` (0: all at once); a short last batch is kept. Changes nothing.
    ///
    /// errors   invalid `no_examples`; as train
    Result<Evaluation> evaluate(const Chain& chain, const ModelState& state, TrainerIo& io, std::uint32_t batch = 256);
    /// The scores of all examples, batch by batch in their order; classes that are not known may be loaded as 0.
    ///
    /// errors   as evaluate; corrupt `not_finite`: the model gives NaN or infinity; what the caller's sink returned
    Status predict(const Chain& chain, const ModelState& state, TrainerIo& io, const ScoresSink& sink,
                   std::uint32_t batch = 256);

private:
    using BatchWork =
        std::function<Status(Workspace& workspace, const BatchPlace& place, std::span<const std::int64_t> labels)>;

    friend class TrainingRun;

    /// recomputed  the training's blocks; nullptr: a forward, which any plan of the memory serves
    Result<std::shared_ptr<Workspace>> workspace_for(const Chain& chain, const Segment& segment, std::uint64_t rows,
                                                     Compute compute, const std::vector<LayerInterval>* recomputed);
    Status forward_batches(const Chain& chain, const ModelState& state, TrainerIo& io, std::uint32_t batch,
                           const BatchWork& work);
    static Status run_batches(Workspace& workspace, const ModelState& state, TrainerIo& io, std::uint64_t size,
                              const BatchWork& work);

    Device device_;
    std::shared_ptr<Workspace> last_;  // of the job that began last, which may be under way
};

/// Whether a trainer would run this program: what a node checks before it accepts an assignment.
///
/// errors   as train's invalid and unsupported
Status check_runnable(const Program& program, const Chain& chain);

}  // namespace causeway
