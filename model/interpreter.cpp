// Runs what check_runnable has accepted: one batch at work, and so many put away as the program says.
#include "model/interpreter.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace causeway {

Interpreter::Interpreter(const TrainJob& job, Workspace& workspace, TrainerIo& io, std::vector<std::uint64_t>& steps)
    : job_(job),
      workspace_(workspace),
      io_(io),
      steps_(steps),
      loader_(job.chain, io),
      value_at_(job.chain.layer_count() + 1),
      gradient_at_(job.chain.layer_count() + 1) {
    knows_loss_ = count_instructions(job.program, OpCode::loss) > 0;
    planned_steps_ = steps_planned();
    workspace_.end_batch();
    frames_.push_back({.body = &job.program.instructions});
}

Result<bool> Interpreter::run() {
    while (!frames_.empty()) {
        Frame& frame = frames_.back();
        if (frame.next == frame.body->size()) {
            TRY(end_of_body());
            continue;
        }
        const Instruction& instruction = (*frame.body)[frame.next];
        if (instruction.code == OpCode::repeat) {
            ++frame.next;
            enter(instruction);
            continue;
        }
        TRY(check_deadline());
        TRY_ASSIGN(const Outcome outcome, timed(instruction));
        if (outcome == Outcome::waits) {
            return false;
        }
        ++frame.next;
    }
    return true;
}

/// A wait for another cell counts as the receive's time.
Result<Interpreter::Outcome> Interpreter::timed(const Instruction& instruction) {
    if (!job_.clock) {
        return one(instruction);
    }
    const Duration start = waiting_since_.value_or(job_.clock());
    waiting_since_.reset();
    TRY_ASSIGN(const Outcome outcome, one(instruction));
    if (outcome == Outcome::waits) {
        waiting_since_ = start;
    } else {
        totals_.seconds[static_cast<std::size_t>(instruction.code)] += seconds(job_.clock() - start);
    }
    return outcome;
}

/// Looked at between instructions, and each time that a receive is tried again.
Status Interpreter::check_deadline() const {
    if (!deadline_ || job_.clock() <= *deadline_) {
        return {};
    }
    return fail(ErrorKind::timed_out, "step_deadline",
                fmt::format("a step took longer than its deadline (epoch {}, batch {}): a smaller batch, or a longer "
                            "train.step_deadline",
                            epoch_ + 1, batch_ + 1));
}

Result<Interpreter::Outcome> Interpreter::one(const Instruction& instruction) {
    const auto done = [](const Status& status) -> Result<Outcome> {
        return status ? Result<Outcome>(Outcome::done) : Result<Outcome>(fail(status.error()));
    };
    switch (instruction.code) {
        case OpCode::load:
            return done(load());
        case OpCode::forward:
            return done(forward(instruction.layers));
        case OpCode::loss:
            return done(loss());
        case OpCode::backward:
            return done(backward(instruction.layers));
        case OpCode::send:
            return done(send(instruction));
        case OpCode::receive:
            return receive(instruction);
        case OpCode::gradient_final:
            return done(gradient_final(instruction.index));
        case OpCode::step:
            TRY(clip());
            if (!knows_loss_) {
                step_done(0);  // another cell knows the loss
            }
            return done(instruction.layers.empty() ? step_ranges(instruction.ranges) : step_layers(instruction.layers));
        case OpCode::recompute:
            return done(workspace_.recompute(instruction.layers));
        case OpCode::deadline:
            if (job_.clock) {
                deadline_ = job_.clock() + std::chrono::milliseconds(instruction.index);
            }
            return Outcome::done;
        case OpCode::snapshot:
            return done(snapshot());
        case OpCode::stash:
            return done(put_away(instruction.index));
        default:
            ASSERT(!"check_runnable refuses the other instructions");
            return Outcome::done;
    }
}

Status Interpreter::forward(LayerInterval layers) {
    if (!value_at_[layers.begin]) {
        ASSERT(!values_arrived_.empty());  // the checker has counted
        const CellMessage message = std::move(values_arrived_.front());
        values_arrived_.pop_front();
        TRY(workspace_.receive_values(layers.begin, static_cast<std::int64_t>(message.rows), message.values));
    }
    value_at_[layers.begin] = false;
    value_at_[layers.end] = true;
    newest_value_ = layers.end;
    return workspace_.forward(layers, Purpose::training, draws());
}

Status Interpreter::backward(LayerInterval layers) {
    if (!gradient_at_[layers.end]) {
        ASSERT(!gradients_arrived_.empty());
        const CellMessage message = std::move(gradients_arrived_.front());
        gradients_arrived_.pop_front();
        TRY(workspace_.receive_gradients(layers.end, static_cast<std::int64_t>(message.rows), message.values));
    }
    gradient_at_[layers.end] = false;
    gradient_at_[layers.begin] = layers.begin > 0;
    newest_gradient_ = layers.begin;
    clipped_ = false;
    return workspace_.backward(layers);
}

Status Interpreter::send(const Instruction& instruction) {
    CellMessage message{.payload = instruction.payload,
                        .epoch = epoch_,
                        .batch = batch_,
                        .microbatch = microbatch_,
                        .rows = static_cast<std::uint64_t>(workspace_.rows())};
    switch (instruction.payload) {
        case Payload::activations:
            if (!job_.chain.gradient_needed(newest_value_)) {  // whatever order of instructions has led here
                return fail(ErrorKind::refused, "raw_inputs",
                            "program: activations that no layer with parameters has made are not sent");
            }
            value_at_[newest_value_] = false;
            TRY(workspace_.values_at(newest_value_, message.values));
            break;
        case Payload::gradients:
            gradient_at_[newest_gradient_] = false;
            TRY(workspace_.gradients_at(newest_gradient_, message.values));
            break;
        case Payload::labels:
            message.labels = loader_.labels();
            message.values = loader_.targets();
            break;
        case Payload::parameters:
            return fail(ErrorKind::unsupported, "program_unsupported",
                        "program: this trainer does not send parameters to cells");
    }
    return io_.send(instruction.index + static_cast<std::uint32_t>(client_), std::move(message));
}

Result<Interpreter::Outcome> Interpreter::receive(const Instruction& instruction) {
    if (io_.stop_requested()) {
        return fail(ErrorKind::refused, "stopped", "training was called off");
    }
    const auto cell = instruction.index + static_cast<std::uint32_t>(client_);
    TRY_ASSIGN(std::optional<CellMessage> message, io_.receive(cell, instruction.payload));
    if (!message) {
        return Outcome::waits;
    }
    TRY(place_arrived(*std::move(message)));
    return Outcome::done;
}

/// A peer's word of where it is in the program must be ours: a lost or doubled batch is an error, never a guess.
Status Interpreter::place_arrived(CellMessage message) {
    if (message.rows != place().rows) {
        return fail(
            ErrorKind::invalid, "wrong_rows",
            fmt::format("{} of {} rows came where {} are due", to_string(message.payload), message.rows, place().rows));
    }
    if (message.epoch != epoch_ || message.batch != batch_ || message.microbatch != microbatch_) {
        return fail(ErrorKind::invalid, "wrong_batch",
                    fmt::format("the {} of epoch {} batch {}.{} came where those of epoch {} batch {}.{} are due",
                                to_string(message.payload), message.epoch, message.batch, message.microbatch, epoch_,
                                batch_, microbatch_));
    }
    if (message.payload == Payload::activations) {
        values_arrived_.push_back(std::move(message));
    } else if (message.payload == Payload::gradients) {
        gradients_arrived_.push_back(std::move(message));
    } else {
        TRY(place_labels(message));
    }
    return {};
}

Status Interpreter::place_labels(const CellMessage& message) {
    const bool numeric = job_.chain.loss().numeric();
    const std::uint64_t found = numeric ? message.values.size() : message.labels.size();
    const std::uint64_t due = numeric ? message.rows * static_cast<std::uint64_t>(job_.chain.classes()) : message.rows;
    if (found != due) {
        return fail(ErrorKind::invalid, "wrong_rows",
                    fmt::format("{} labels came for {} rows, {} are due", found, message.rows, due));
    }
    return numeric ? workspace_.receive_targets(message.values) : workspace_.receive_labels(message.labels);
}

/// The rows of the current batch, or of the current part of it.
BatchPlace Interpreter::place() const {
    const std::uint64_t rows = batch_rows();
    const std::uint64_t part = microbatches_ == 1 ? rows : part_rows();
    const std::uint64_t begin = microbatch_ * part;
    return {.epoch = epoch_,
            .batch = batch_,
            .first = batch_ * batch_size() + begin,
            .rows = std::min(part, rows - begin)};
}

Status Interpreter::load() {
    if (io_.stop_requested()) {
        return fail(ErrorKind::refused, "stopped", "training was called off");
    }
    value_at_[0] = true;
    newest_value_ = 0;
    return loader_.load(place(), workspace_);
}

/// A batch's loss is the mean over the batch: each part divides by the whole batch's rows, and the parts add up.
Status Interpreter::loss() {
    const std::size_t end = job_.chain.layer_count();
    value_at_[end] = false;
    gradient_at_[end] = true;
    newest_gradient_ = end;
    const auto divisor = static_cast<double>(batch_rows());
    TRY_ASSIGN(const BatchLoss part, workspace_.loss(Purpose::training, divisor));
    const std::uint64_t rows = place().rows;
    batch_loss_ = microbatch_ == 0 ? part.loss : batch_loss_ + part.loss;
    if (loss_from_ && *loss_from_ <= epoch_) {
        begin_loss();
    }
    totals_.epoch_loss += part.loss * divisor;
    totals_.epoch_examples += rows;
    totals_.examples += rows;
    if (microbatch_ + 1 == microbatches_) {
        step_done(batch_loss_);
    }
    return {};
}

void Interpreter::step_done(double loss) {
    io_.progress(++totals_.steps, planned_steps_, loss);
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

/// A function of the place alone, so that cells that hold other layers of the same batch draw alike.
Draws Interpreter::draws() const {
    Draws draws = job_.draws;
    draws.step = epoch_ * batches_here() + batch_;
    draws.node = job_.clients.empty() ? draws.node : job_.clients[client_].node;
    draws.first_row = place().first - batch_ * batch_size();
    return draws;
}

/// Before the first step after a backward: the bound is on the gradient of all layers that wait for a step, whichever
/// step instruction takes them.
Status Interpreter::clip() {
    const double bound = job_.optimizer.rule.clip_norm;
    if (bound == 0 || clipped_) {
        return {};
    }
    clipped_ = true;
    TRY_ASSIGN(const double squares, workspace_.gradient_squares());
    const double norm = std::sqrt(squares);
    return norm > bound ? workspace_.scale_gradients(bound / (norm + 1e-6)) : Status{};  // as clip_grad_norm_ has it
}

/// Rounds that are over, and the share of this one's steps.
double Interpreter::rate_share() const {
    const auto rounds = static_cast<double>(job_.draws.round > 0 ? job_.draws.round - 1 : 0);
    const auto steps = static_cast<double>(count_of(RepeatOver::epochs) * batches_here());
    return job_.optimizer.rule.schedule.share(rounds + static_cast<double>(draws().step) / std::max(steps, 1.0));
}

/// Two steps on parts of a layer's one gradient are one step of the layer.
std::uint64_t Interpreter::step_number(std::size_t layer) {
    steps_[layer] += workspace_.take_gradient(layer) ? 1 : 0;
    return steps_[layer];
}

/// Neighbours that have taken equally many steps are one call.
Status Interpreter::step_layers(LayerInterval layers) {
    const double share = rate_share();
    Range open;
    std::uint64_t open_step = 0;
    for (std::size_t layer = layers.begin; layer < layers.end; ++layer) {
        const Range range = workspace_.layer_range(layer);
        if (range.size() == 0) {
            continue;
        }
        const std::uint64_t step = step_number(layer);
        if (open.size() > 0 && step != open_step) {
            TRY(workspace_.step(job_.optimizer, open, {open_step, share}));
            open = {};
        }
        open = open.size() > 0 ? Range{open.begin, range.end} : range;
        open_step = step;
    }
    return open.size() > 0 ? workspace_.step(job_.optimizer, open, {open_step, share}) : Status{};
}

Status Interpreter::step_ranges(const RangeSet& ranges) {
    const double share = rate_share();
    for (std::size_t layer = 0; layer < steps_.size(); ++layer) {
        const Range whole = workspace_.layer_range(layer);
        for (const Range& range : ranges.ranges()) {
            const Range part{std::max(range.begin, whole.begin), std::min(range.end, whole.end)};
            if (part.begin < part.end) {
                TRY(workspace_.step(job_.optimizer, part, {step_number(layer), share}));
            }
        }
    }
    return {};
}

}  // namespace causeway
