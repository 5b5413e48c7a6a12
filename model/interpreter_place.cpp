// Where a program's run is: repeats, whose batch it is, passes that are put away, and runs that are kept and gone on
// with. Part of Interpreter (interpreter.h), whose instructions are in interpreter.cpp. Thread: the trainer's.
#include <algorithm>

#include "model/interpreter.h"

namespace causeway {

Status Interpreter::restore(const RunPlace& place, const RunTotals& totals) {
    const auto elsewhere = fail(ErrorKind::invalid, "snapshot_mismatch", "the kept run is of another program or batch");
    if (place.next.empty() || place.next.size() > max_program_depth + 1) {
        return elsewhere;
    }
    std::vector<Frame> frames;
    const std::vector<Instruction>* body = &job_.program.instructions;
    const Instruction* repeat = nullptr;
    for (const std::uint32_t next : place.next) {
        if (next == 0 || next > body->size()) {
            return elsewhere;
        }
        frames.push_back({.body = body, .next = next, .repeat = repeat});
        repeat = &(*body)[next - 1];
        body = &repeat->body;
    }
    if (!repeat->keeps_run()) {  // the last one is the snapshot itself, behind which the run goes on
        return elsewhere;
    }
    if (place.batch >= count_of(RepeatOver::batches)) {  // before a microbatch's size is asked for
        return elsewhere;
    }
    epoch_ = place.epoch;
    batch_ = place.batch;
    microbatch_ = place.microbatch;
    for (Frame& frame : frames) {
        if (frame.repeat != nullptr) {
            frame.count = count_of(frame.repeat->over);
            if (frame.repeat->over == RepeatOver::microbatches) {
                microbatches_ = frame.count;
            }
            if (place_of(frame.repeat->over) >= frame.count) {
                return elsewhere;
            }
        }
    }
    frames_ = std::move(frames);
    totals_ = totals;
    return {};
}

/// The place is that of the next instruction, since this one is done when the run goes on.
Status Interpreter::snapshot() {
    if (!io_.wants_snapshot()) {
        return {};
    }
    RunSnapshot kept{.place = {.epoch = epoch_, .batch = batch_, .microbatch = microbatch_}, .totals = totals_};
    for (const Frame& frame : frames_) {
        kept.place.next.push_back(static_cast<std::uint32_t>(frame.next));
    }
    ++kept.place.next.back();
    TRY_ASSIGN(kept.model, workspace_.get_model());
    TRY_ASSIGN(kept.optimizer.moments, workspace_.get_moments());
    kept.optimizer.steps = steps_;
    io_.keep(std::move(kept));
    return {};
}

std::uint64_t Interpreter::batch_size() const {
    return job_.batch == 0 ? examples_here() : std::min<std::uint64_t>(job_.batch, examples_here());
}

/// Of the current batch: the last one may be short.
std::uint64_t Interpreter::batch_rows() const {
    return std::min(batch_size(), examples_here() - batch_ * batch_size());
}

std::uint64_t Interpreter::count_of(RepeatOver over) const {
    switch (over) {
        case RepeatOver::epochs:
            return job_.local_epochs;
        case RepeatOver::batches:
            return job_.clients.empty() ? batches_here() : most_batches();
        case RepeatOver::clients:
            return job_.clients.size();
        case RepeatOver::microbatches:
            break;
    }
    return (batch_rows() + part_rows() - 1) / part_rows();
}

/// Whose batch it is: this cell's own, or of the client whose turn it is.
std::uint64_t Interpreter::examples_here() const {
    return job_.clients.empty() ? io_.examples() : job_.clients[client_].examples;
}

std::uint64_t Interpreter::batches_of(std::uint64_t examples) const {
    const std::uint64_t size = job_.batch == 0 ? examples : std::min<std::uint64_t>(job_.batch, examples);
    return size == 0 ? 0 : (examples + size - 1) / size;
}

std::uint64_t Interpreter::most_batches() const {
    return batches_of(std::ranges::max(job_.clients, {}, &JobClient::examples).examples);
}

/// The first client at that place or later that has a batch of this number.
std::uint64_t Interpreter::client_from(std::uint64_t place) const {
    while (place < job_.clients.size() && batch_ >= batches_of(job_.clients[place].examples)) {
        ++place;
    }
    return place;
}

/// For progress: each client counts with its own batches.
std::uint64_t Interpreter::steps_planned() const {
    const OpCode code = knows_loss_ ? OpCode::loss : OpCode::step;
    RepeatCounts counts{.epochs = count_of(RepeatOver::epochs), .batches = 0};
    if (job_.clients.empty()) {
        counts.batches = batches_here();
    }
    for (const JobClient& client : job_.clients) {
        counts.batches += batches_of(client.examples);
    }
    return count_executions(job_.program, code, counts);
}

/// Of each microbatch but the last, which may be short.
std::uint64_t Interpreter::part_rows() const {
    return job_.microbatch == 0 ? batch_rows() : std::min<std::uint64_t>(job_.microbatch, batch_rows());
}

std::uint64_t& Interpreter::place_of(RepeatOver over) {
    return over == RepeatOver::epochs    ? epoch_
           : over == RepeatOver::batches ? batch_
           : over == RepeatOver::clients ? client_
                                         : microbatch_;
}

void Interpreter::enter(const Instruction& repeat) {
    const std::uint64_t count = count_of(repeat.over);
    if (repeat.over == RepeatOver::microbatches) {
        microbatches_ = count;
    }
    place_of(repeat.over) = 0;
    if (repeat.over == RepeatOver::clients) {
        client_ = client_from(0);  // some client has a batch of this number, or there would be none
    }
    if (count > 0 && !repeat.body.empty()) {
        frames_.push_back({.body = &repeat.body, .repeat = &repeat, .count = count});
        begin_pass(repeat.over);
    }
}

void Interpreter::begin_pass(RepeatOver over) {
    if (over == RepeatOver::epochs) {
        loss_from_ = epoch_;
        if (put_away_.empty()) {
            begin_loss();
        }
    }
    workspace_.end_batch();
}

void Interpreter::begin_loss() {
    loss_from_.reset();
    totals_.epoch_loss = 0;
    totals_.epoch_examples = 0;
}

/// The next pass of the repeat, or what follows it.
Status Interpreter::end_of_body() {
    Frame& frame = frames_.back();
    if (frame.repeat == nullptr) {
        frames_.pop_back();
        return {};
    }
    const RepeatOver over = frame.repeat->over;
    if (over == RepeatOver::batches) {
        TRY_ASSIGN(const bool another, end_of_pass(frame));
        if (another) {
            return {};
        }
    }
    auto& place = place_of(over);
    place = over == RepeatOver::clients ? client_from(place + 1) : place + 1;
    if (place < frame.count) {
        frame.next = 0;
        begin_pass(over);
        return {};
    }
    place = 0;
    if (over == RepeatOver::microbatches) {
        microbatches_ = 1;
    }
    frames_.pop_back();
    return {};
}

// ---------------------------------------------------------------- passes that are put away

void Interpreter::swap_pass(Pass& pass) {
    std::swap(epoch_, pass.epoch);
    std::swap(batch_, pass.batch);
    std::swap(value_at_, pass.value_at);
    std::swap(gradient_at_, pass.gradient_at);
    std::swap(newest_value_, pass.newest_value);
    std::swap(newest_gradient_, pass.newest_gradient);
    std::swap(values_arrived_, pass.values_arrived);
    std::swap(gradients_arrived_, pass.gradients_arrived);
}

/// At the place of the repeats, with nothing of its own.
Interpreter::Pass Interpreter::fresh_pass() const {
    const std::vector<bool> nothing(job_.chain.layer_count() + 1);
    return {.epoch = epoch_, .batch = batch_, .value_at = nothing, .gradient_at = nothing};
}

/// The rest of the body is for the pass so many before this one, or for none yet.
Status Interpreter::put_away(std::uint32_t passes) {
    put_away_.push_back(fresh_pass());
    swap_pass(put_away_.back());
    TRY(workspace_.put_away());
    if (put_away_.size() > passes) {
        return take_up();
    }
    frames_.back().next = frames_.back().body->size() - 1;
    return {};
}

Status Interpreter::take_up() {
    taken_up_from_ = std::move(put_away_.front());
    put_away_.pop_front();
    swap_pass(*taken_up_from_);
    return workspace_.take_up();
}

/// Back to where the repeats are. After the last pass of all, those that were put away go on: true.
Result<bool> Interpreter::end_of_pass(Frame& frame) {
    if (taken_up_from_) {
        swap_pass(*taken_up_from_);
        taken_up_from_.reset();
        workspace_.let_go();
    }
    const bool epochs = std::ranges::any_of(
        frames_, [](const Frame& of) { return of.repeat != nullptr && of.repeat->over == RepeatOver::epochs; });
    const bool last = batch_ + 1 == frame.count && (!epochs || epoch_ + 1 == job_.local_epochs);
    if (!last || put_away_.empty()) {
        return false;
    }
    TRY(take_up());
    const auto stash = std::ranges::find(*frame.body, OpCode::stash, &Instruction::code);
    frame.next = static_cast<std::size_t>(stash - frame.body->begin()) + 1;
    return true;
}

}  // namespace causeway
