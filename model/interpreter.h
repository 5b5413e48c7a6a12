// The program interpreter: one instruction after another on a workspace. Internal to model/; callers use the Trainer.
#pragma once

#include <vector>

#include "model/batch_loader.h"
#include "model/trainer.h"
#include "model/workspace.h"

namespace causeway {

/// Sums over one run.
struct RunTotals {
    double epoch_loss = 0;             // sum over the examples of the current epoch
    std::uint64_t epoch_examples = 0;  // of the current epoch
    std::uint64_t examples = 0;
    std::uint64_t steps = 0;
    std::array<double, op_code_count> seconds{};
};

/// threads  bound to the trainer thread; lives for one run
class Interpreter {
public:
    /// `steps` is the optimizer's, per layer; it is advanced.
    Interpreter(const TrainJob& job, Workspace& workspace, TrainerIo& io, std::vector<std::uint64_t>& steps);

    Result<RunTotals> run();

private:
    Status all(const std::vector<Instruction>& instructions);
    Status timed(const Instruction& instruction);
    Status one(const Instruction& instruction);
    Status repeat(const Instruction& instruction);
    Status load();
    Status loss();
    Status gradient_final(std::size_t layer);
    std::uint64_t step_number(std::size_t layer);
    Status step_layers(LayerInterval layers);
    Status step_ranges(const RangeSet& ranges);
    [[nodiscard]] std::uint64_t batch_size() const;
    [[nodiscard]] std::uint64_t count_of(RepeatOver over) const;
    void start_epoch();

    const TrainJob& job_;
    Workspace& workspace_;
    TrainerIo& io_;
    std::vector<std::uint64_t>& steps_;
    RunTotals totals_;
    std::uint64_t planned_steps_ = 0;
    std::uint64_t epoch_ = 0, batch_ = 0, microbatch_ = 0;  // where the repeats are
    std::uint64_t microbatches_ = 1;                        // of the current batch
    std::uint64_t batch_rows_ = 0;
    double batch_loss_ = 0;
    std::uint64_t loaded_rows_ = 0;
    BatchLoader loader_;
};

}  // namespace causeway
