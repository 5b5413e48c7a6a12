// Runs what check_runnable has accepted: one batch in flight, no other cell.
#include "model/interpreter.h"

#include <algorithm>

#include <fmt/format.h>

namespace causeway {

Interpreter::Interpreter(const TrainJob& job, Workspace& workspace, TrainerIo& io, std::vector<std::uint64_t>& steps)
    : job_(job), workspace_(workspace), io_(io), steps_(steps), loader_(job.chain, io) {
    planned_steps_ = count_executions(
        job.program, OpCode::load, {.epochs = count_of(RepeatOver::epochs), .batches = count_of(RepeatOver::batches)});
}

Result<RunTotals> Interpreter::run() {
    start_epoch();
    TRY(all(job_.program.instructions));
    return totals_;
}

std::uint64_t Interpreter::batch_size() const {
    return job_.batch == 0 ? io_.examples() : std::min<std::uint64_t>(job_.batch, io_.examples());
}

std::uint64_t Interpreter::count_of(RepeatOver over) const {
    switch (over) {
        case RepeatOver::epochs:
            return job_.local_epochs;
        case RepeatOver::batches:
            return (io_.examples() + batch_size() - 1) / batch_size();
        case RepeatOver::microbatches:
            break;
    }
    const std::uint64_t rows = std::min(batch_size(), io_.examples() - batch_ * batch_size());
    return std::min<std::uint64_t>(job_.microbatches, rows);  // no part is empty
}

void Interpreter::start_epoch() {
    totals_.epoch_loss = 0;
    totals_.epoch_examples = 0;
}

Status Interpreter::all(const std::vector<Instruction>& instructions) {
    for (const Instruction& instruction : instructions) {
        TRY(instruction.code == OpCode::repeat ? repeat(instruction) : timed(instruction));
    }
    return {};
}

Status Interpreter::repeat(const Instruction& instruction) {
    std::uint64_t& place = instruction.over == RepeatOver::epochs    ? epoch_
                           : instruction.over == RepeatOver::batches ? batch_
                                                                     : microbatch_;
    const std::uint64_t count = count_of(instruction.over);
    if (instruction.over == RepeatOver::microbatches) {
        microbatches_ = count;
    }
    for (place = 0; place < count; ++place) {
        if (instruction.over == RepeatOver::epochs) {
            start_epoch();
        }
        TRY(all(instruction.body));
    }
    place = 0;
    if (instruction.over == RepeatOver::microbatches) {
        microbatches_ = 1;
    }
    return {};
}

Status Interpreter::timed(const Instruction& instruction) {
    if (!job_.clock) {
        return one(instruction);
    }
    const Duration start = job_.clock();
    TRY(one(instruction));
    totals_.seconds[static_cast<std::size_t>(instruction.code)] += seconds(job_.clock() - start);
    return {};
}

Status Interpreter::one(const Instruction& instruction) {
    switch (instruction.code) {
        case OpCode::load:
            return load();
        case OpCode::forward:
            return workspace_.forward(instruction.layers);
        case OpCode::loss:
            return loss();
        case OpCode::backward:
            return workspace_.backward(instruction.layers);
        case OpCode::gradient_final:
            return gradient_final(instruction.index);
        case OpCode::step:
            return instruction.layers.empty() ? step_ranges(instruction.ranges) : step_layers(instruction.layers);
        default:
            ASSERT(!"check_runnable refuses the other instructions");
            return {};
    }
}

/// The rows of the current batch, or of the current part of it.
Status Interpreter::load() {
    if (io_.stop_requested()) {
        return fail(ErrorKind::refused, "stopped", "training was called off");
    }
    const std::uint64_t batch_first = batch_ * batch_size();
    batch_rows_ = std::min(batch_size(), io_.examples() - batch_first);
    const std::uint64_t begin = batch_rows_ * microbatch_ / microbatches_;
    const std::uint64_t end = batch_rows_ * (microbatch_ + 1) / microbatches_;
    const BatchPlace place{.epoch = epoch_, .batch = batch_, .first = batch_first + begin, .rows = end - begin};
    loaded_rows_ = place.rows;
    return loader_.load(place, workspace_);
}

/// A batch's loss is the mean over the batch: each part divides by the whole batch's rows, and the parts add up.
Status Interpreter::loss() {
    const auto divisor = static_cast<double>(batch_rows_);
    TRY_ASSIGN(const BatchLoss part, workspace_.loss(Purpose::training, divisor));
    batch_loss_ = microbatch_ == 0 ? part.loss : batch_loss_ + part.loss;
    totals_.epoch_loss += part.loss * divisor;
    totals_.epoch_examples += loaded_rows_;
    totals_.examples += loaded_rows_;
    if (microbatch_ + 1 == microbatches_) {
        io_.progress(++totals_.steps, planned_steps_, batch_loss_);
    }
    return {};
}

Status Interpreter::gradient_final(std::size_t layer) {
    const Range range = workspace_.layer_range(layer);
    if (job_.hook == nullptr || range.size() == 0) {
        return {};
    }
    return job_.hook->gradient_final({.layer = static_cast<std::uint32_t>(layer),
                                      .range = range,
                                      .parameters = workspace_.parameters(range),
                                      .gradient = workspace_.gradient(range),
                                      .plans = workspace_.plans()});
}

/// Two steps on parts of a layer's one gradient are one step of the layer.
std::uint64_t Interpreter::step_number(std::size_t layer) {
    steps_[layer] += workspace_.take_gradient(layer) ? 1 : 0;
    return steps_[layer];
}

/// Neighbours that have taken equally many steps are one call.
Status Interpreter::step_layers(LayerInterval layers) {
    Range open;
    std::uint64_t open_step = 0;
    for (std::size_t layer = layers.begin; layer < layers.end; ++layer) {
        const Range range = workspace_.layer_range(layer);
        if (range.size() == 0) {
            continue;
        }
        const std::uint64_t step = step_number(layer);
        if (open.size() > 0 && step != open_step) {
            TRY(workspace_.step(job_.optimizer, open, open_step));
            open = {};
        }
        open = open.size() > 0 ? Range{open.begin, range.end} : range;
        open_step = step;
    }
    return open.size() > 0 ? workspace_.step(job_.optimizer, open, open_step) : Status{};
}

Status Interpreter::step_ranges(const RangeSet& ranges) {
    for (std::size_t layer = 0; layer < steps_.size(); ++layer) {
        const Range whole = workspace_.layer_range(layer);
        for (const Range& range : ranges.ranges()) {
            const Range part{std::max(range.begin, whole.begin), std::min(range.end, whole.end)};
            if (part.begin < part.end) {
                TRY(workspace_.step(job_.optimizer, part, step_number(layer)));
            }
        }
    }
    return {};
}

}  // namespace causeway
