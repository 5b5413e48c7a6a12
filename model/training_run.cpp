// A training job from its checks to its result: model to the device, the program there, the end model back.
//
// The run owns its job and shares its workspace with the trainer, so several of them can take turns on the trainer's
// one thread; once a run lets go of its workspace, the next job of the same shape gets it.
#include "model/training_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/interpreter.h"
#include "model/workspace.h"

namespace causeway {
namespace {

Status check_optimizer_state(const TrainJob& job, const Segment& segment, const OptimizerState& state) {
    const auto parameters = segment.arena_size(ArenaKind::trainable);
    const bool fits =
        state.steps.size() == job.chain.layer_count() &&
        state.moments.size() == job.optimizer.kind->moments(job.optimizer) &&
        std::ranges::all_of(state.moments, [&](const auto& moment) { return moment.size() == parameters; });
    if (fits) {
        return {};
    }
    return fail(ErrorKind::invalid, "optimizer_mismatch",
                fmt::format("the optimizer state is not one of {} for this model", job.optimizer.kind->name));
}

/// Every layer that the program touches must be here.
Status check_held(const std::vector<Instruction>& instructions, const Segment& segment) {
    for (const Instruction& instruction : instructions) {
        TRY(check_held(instruction.body, segment));
        for (std::size_t layer = instruction.layers.begin; layer < instruction.layers.end; ++layer) {
            if (!segment.holds(layer)) {
                return fail(ErrorKind::invalid, "bad_segment",
                            fmt::format("program: {} [{}, {}) on a node that holds {}", to_string(instruction.code),
                                        instruction.layers.begin, instruction.layers.end, to_text(segment.layers())));
            }
        }
    }
    return {};
}

Status check_job(const TrainJob& job, const Segment& segment) {
    TRY(check_runnable(job.program, job.chain));
    TRY(check_held(job.program.instructions, segment));
    TRY(check_model_state(segment, job.start));
    const bool needs_input = count_instructions(job.program, OpCode::load) > 0 && !segment.holds(0);
    const bool needs_end =
        count_instructions(job.program, OpCode::loss) > 0 && !segment.holds(job.chain.layer_count() - 1);
    if (needs_input || needs_end) {
        return fail(ErrorKind::invalid, "bad_segment",
                    fmt::format("program: it {} on a node that holds {}",
                                needs_input ? "loads examples" : "computes the loss", to_text(segment.layers())));
    }
    if (job.optimizer.rule.clip_norm != 0 && count_instructions(job.program, OpCode::step) > 0 &&
        segment != Segment::whole(job.chain)) {
        return fail(ErrorKind::unsupported, "clip_unsupported",
                    "clip_norm bounds the gradient of the whole model, and this node holds only some of its layers; "
                    "set train.clip_norm = 0");
    }
    if (works_for_clients(job.program) == job.clients.empty()) {
        return fail(ErrorKind::invalid, "bad_job",
                    "a program that repeats over clients needs some, and no other program has any");
    }
    if (job.local_epochs == 0) {
        return fail(ErrorKind::invalid, "bad_job", "local epochs must be at least 1");
    }
    if (job.hook != nullptr && count_instructions(job.program, OpCode::gradient_final) == 0) {
        return fail(ErrorKind::invalid, "bad_job",
                    "the sync rule acts on gradients, but the program has no gradient_final");
    }
    return {};
}

}  // namespace

Status check_model_state(const Segment& segment, const ModelState& state) {
    for (const ArenaKind kind : {ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen}) {
        const auto wanted = segment.arena_size(kind);
        const auto found = state.arena(kind).values.size();
        if (found != wanted) {
            return fail(ErrorKind::invalid, "model_mismatch",
                        fmt::format("the start model has {} {} values, the chain {}", found, to_string(kind), wanted));
        }
    }
    return {};
}

Status TrainerIo::send(std::uint32_t cell, CellMessage) {
    return fail(ErrorKind::unsupported, "no_cells", fmt::format("there is no cell {} to send to", cell));
}

Result<std::optional<CellMessage>> TrainerIo::receive(std::uint32_t cell, Payload) {
    return fail(ErrorKind::unsupported, "no_cells", fmt::format("there is no cell {} to receive from", cell));
}

struct TrainingRun::Parts {
    TrainJob job;
    OptimizerState state;
    std::shared_ptr<Workspace> workspace;    // empty: there are no examples, the end is the start
    std::optional<Interpreter> interpreter;  // refers to all of the above

    explicit Parts(TrainJob work) : job(std::move(work)) {}
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    ~Parts() = default;
};

TrainingRun::TrainingRun(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TrainingRun::TrainingRun(TrainingRun&&) noexcept = default;
TrainingRun& TrainingRun::operator=(TrainingRun&&) noexcept = default;
TrainingRun::~TrainingRun() = default;

std::uint64_t rows_at_once(const TrainJob& job, std::uint64_t examples) {
    if (!job.clients.empty()) {
        examples = std::ranges::max(job.clients, {}, &JobClient::examples).examples;
    }
    const std::uint64_t batch = job.batch == 0 ? examples : std::min<std::uint64_t>(job.batch, examples);
    return job.microbatch > 0 && works_by_microbatch(job.program) ? std::min<std::uint64_t>(job.microbatch, batch)
                                                                  : batch;
}

Result<TrainingRun> Trainer::begin(TrainJob work, TrainerIo& io) {
    auto parts = std::make_unique<TrainingRun::Parts>(std::move(work));
    TrainJob& job = parts->job;
    TRY_ASSIGN(const Segment segment, job.segment.empty() ? Result<Segment>(Segment::whole(job.chain))
                                                          : Segment::make(job.chain, job.segment));
    TRY(check_job(job, segment));
    parts->state = job.optimizer_state ? *std::move(job.optimizer_state)
                                       : OptimizerState::fresh(job.optimizer, job.chain.layer_count(),
                                                               segment.arena_size(ArenaKind::trainable));
    TRY(check_optimizer_state(job, segment, parts->state));
    const std::uint64_t examples = io.examples();
    if (examples == 0) {
        return TrainingRun(std::move(parts));
    }
    if (job.resume) {
        TRY(check_model_state(segment, job.resume->model));
        TRY(check_optimizer_state(job, segment, job.resume->optimizer));
        job.resume->model.trainable.version = job.start.trainable.version;
        job.start = std::move(job.resume->model);
        parts->state = std::move(job.resume->optimizer);
    }
    const auto recomputed = recomputed_blocks(job.program);
    TRY_ASSIGN(parts->workspace, workspace_for(job.chain, segment, rows_at_once(job, examples),
                                                job.optimizer.rule.compute, &recomputed));
    TRY(parts->workspace->prepare_training(parts->state.moments.size()));
    TRY(parts->workspace->put_model(job.start));
    TRY(parts->workspace->put_moments(parts->state.moments));
    job.start = {};  // the device has both; result() reads them there
    parts->state.moments = {};
    parts->interpreter.emplace(job, *parts->workspace, io, parts->state.steps);
    if (job.resume) {
        TRY(parts->interpreter->restore(job.resume->place, job.resume->totals));
    }
    return TrainingRun(std::move(parts));
}

Result<TrainingRun::State> TrainingRun::advance() {
    if (!parts_->interpreter) {
        return State::finished;
    }
    TRY_ASSIGN(const bool finished, parts_->interpreter->run());
    return finished ? State::finished : State::waiting;
}

Result<TrainResult> TrainingRun::result() {
    if (!parts_->interpreter) {
        return TrainResult{.end = std::move(parts_->job.start), .optimizer_state = std::move(parts_->state)};
    }
    const RunTotals& totals = parts_->interpreter->totals();
    TRY_ASSIGN(parts_->state.moments, parts_->workspace->get_moments());
    TRY_ASSIGN(ModelState end, parts_->workspace->get_model());
    return TrainResult{
        .end = std::move(end),
        .optimizer_state = std::move(parts_->state),
        .loss = totals.epoch_examples == 0 ? 0.0 : totals.epoch_loss / static_cast<double>(totals.epoch_examples),
        .examples = totals.examples,
        .steps = totals.steps,
        .seconds = totals.seconds};
}

Result<TrainResult> Trainer::train(TrainJob job, TrainerIo& io) {
    TRY_ASSIGN(TrainingRun run, begin(std::move(job), io));
    TRY_ASSIGN(const TrainingRun::State state, run.advance());
    if (state == TrainingRun::State::waiting) {
        return fail(ErrorKind::invalid, "program_waits", "program: it waits for a cell, and nothing came from it");
    }
    return run.result();
}

}  // namespace causeway
