// The program interpreter: one instruction after another on a workspace. Internal to model/; callers use the Trainer.
//
// It keeps its place (a frame per repeat it is in) instead of recursing, so that a receive that finds nothing can hand
// the thread back and be tried again later. Values that arrive have no boundary of their own: the next forward or
// backward that finds nothing at its boundary takes the oldest of them, as the program's checker counts them.
//
// A `stash` of passes splits the passes over batches in two: the second half of each is run so many passes later, when
// the pass is taken up with all that belonged to it, the memory of its values and its parameters included.
#pragma once

#include <deque>
#include <vector>

#include "model/batch_loader.h"
#include "model/trainer.h"
#include "model/workspace.h"

namespace causeway {

/// threads  bound to the trainer thread; lives for one run
class Interpreter {
public:
    /// `steps` is the optimizer's, per layer; it is advanced.
    Interpreter(const TrainJob& job, Workspace& workspace, TrainerIo& io, std::vector<std::uint64_t>& steps);

    /// Goes on from a place where an earlier run was kept. Before run().
    ///
    /// errors   invalid `snapshot_mismatch`: there is no such place in the program
    Status restore(const RunPlace& place, const RunTotals& totals);
    /// Goes on until the program's end (true) or a receive that finds nothing (false).
    Result<bool> run();
    [[nodiscard]] const RunTotals& totals() const { return totals_; }

private:
    /// A list of instructions under way: the program's own, or a repeat's.
    struct Frame {
        const std::vector<Instruction>* body;
        std::size_t next = 0;
        const Instruction* repeat = nullptr;  // nullptr: the program itself
        std::uint64_t count = 1;
    };
    enum class Outcome { done, waits };

    /// What belongs to the batch in progress, while another one is.
    struct Pass {
        std::uint64_t epoch = 0, batch = 0;
        std::vector<bool> value_at, gradient_at;
        std::size_t newest_value = 0, newest_gradient = 0;
        std::deque<CellMessage> values_arrived, gradients_arrived;
    };

    void enter(const Instruction& repeat);
    Status end_of_body();
    Result<bool> end_of_pass(Frame& frame);
    void begin_loss();
    Status put_away(std::uint32_t passes);
    Status take_up();
    void swap_pass(Pass& pass);
    [[nodiscard]] Pass fresh_pass() const;
    void begin_pass(RepeatOver over);
    [[nodiscard]] std::uint64_t& place_of(RepeatOver over);
    Result<Outcome> timed(const Instruction& instruction);
    Result<Outcome> one(const Instruction& instruction);
    Status forward(LayerInterval layers);
    Status backward(LayerInterval layers);
    Status send(const Instruction& instruction);
    Result<Outcome> receive(const Instruction& instruction);
    Status place_arrived(CellMessage message);
    Status place_labels(const CellMessage& message);
    [[nodiscard]] BatchPlace place() const;
    void step_done(double loss);
    Status snapshot();
    [[nodiscard]] std::uint64_t part_rows() const;
    Status check_deadline() const;
    Status load();
    Status loss();
    Status gradient_final(std::size_t layer);
    std::uint64_t step_number(std::size_t layer);
    Status clip();
    [[nodiscard]] double rate_share() const;
    [[nodiscard]] Draws draws() const;
    Status step_layers(LayerInterval layers);
    Status step_ranges(const RangeSet& ranges);
    [[nodiscard]] std::uint64_t batch_size() const;
    [[nodiscard]] std::uint64_t batch_rows() const;
    [[nodiscard]] std::uint64_t count_of(RepeatOver over) const;
    [[nodiscard]] std::uint64_t examples_here() const;
    [[nodiscard]] std::uint64_t batches_of(std::uint64_t examples) const;
    [[nodiscard]] std::uint64_t batches_here() const { return batches_of(examples_here()); }
    [[nodiscard]] std::uint64_t most_batches() const;
    [[nodiscard]] std::uint64_t client_from(std::uint64_t place) const;
    [[nodiscard]] std::uint64_t steps_planned() const;

    const TrainJob& job_;
    Workspace& workspace_;
    TrainerIo& io_;
    std::vector<std::uint64_t>& steps_;
    RunTotals totals_;
    std::uint64_t planned_steps_ = 0;
    bool knows_loss_ = true;  // else another cell does, and steps are counted
    std::uint64_t epoch_ = 0, batch_ = 0, client_ = 0, microbatch_ = 0;  // where the repeats are
    std::uint64_t microbatches_ = 1;  // of the current batch, inside a repeat over them
    double batch_loss_ = 0;
    std::optional<std::uint64_t> loss_from_;  // epoch that has begun while batches of earlier ones were put away
    bool clipped_ = false;                    // since the last backward
    BatchLoader loader_;
    std::vector<Frame> frames_;
    std::optional<Duration> waiting_since_;
    std::optional<Duration> deadline_;
    std::vector<bool> value_at_, gradient_at_;  // per boundary: computed or loaded here, and not used yet
    std::size_t newest_value_ = 0, newest_gradient_ = 0;
    std::deque<CellMessage> values_arrived_, gradients_arrived_;
    std::deque<Pass> put_away_;          // oldest first
    std::optional<Pass> taken_up_from_;  // where the repeats were when the pass at work was taken up
};

}  // namespace causeway
