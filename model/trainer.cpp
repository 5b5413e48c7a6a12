// Checks of a job, the workspace that is kept between calls, and evaluation.
#include "model/trainer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/batch_loader.h"
#include "model/interpreter.h"
#include "model/workspace.h"

namespace causeway {
namespace {

// Row counts that one workspace keeps plans for: full and short last batches of a few datasets. A simulator with many
// clients brings more; then everything prepared is dropped and made again as needed.
constexpr std::size_t max_prepared_row_counts = 64;

tl::unexpected<Error> unsupported(std::string_view what) {
    return fail(ErrorKind::unsupported, "program_unsupported",
                fmt::format("program: this trainer does not run {}", what));
}

/// The sizes of a state that came from elsewhere: the workspace asserts them.
Status check_state(const Chain& chain, const ModelState& state) {
    for (const ArenaKind kind : {ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen}) {
        const auto wanted = chain.table().arena_size(kind);
        const auto found = state.arena(kind).values.size();
        if (found != wanted) {
            return fail(ErrorKind::invalid, "model_mismatch",
                        fmt::format("the start model has {} {} values, the chain {}", found, to_string(kind), wanted));
        }
    }
    return {};
}

Status check_optimizer_state(const TrainJob& job, const OptimizerState& state) {
    const bool fits = state.steps.size() == job.chain.layer_count() &&
                      state.moments.size() == job.optimizer.kind->moments(job.optimizer) &&
                      std::ranges::all_of(state.moments, [&](const auto& moment) {
                          return moment.size() == job.chain.parameter_count();
                      });
    if (fits) {
        return {};
    }
    return fail(ErrorKind::invalid, "optimizer_mismatch",
                fmt::format("the optimizer state is not one of {} for this model", job.optimizer.kind->name));
}

Status check_job(const TrainJob& job) {
    TRY(check_runnable(job.program, job.chain));
    TRY(check_state(job.chain, job.start));
    if (job.local_epochs == 0 || job.microbatches == 0) {
        return fail(ErrorKind::invalid, "bad_job", "local epochs and microbatches must be at least 1");
    }
    if (job.hook != nullptr && count_instructions(job.program, OpCode::gradient_final) == 0) {
        return fail(ErrorKind::invalid, "bad_job",
                    "the sync rule acts on gradients, but the program has no gradient_final");
    }
    return {};
}

}  // namespace

Status check_runnable(const Program& program, const Chain& chain) {
    for (const OpCode code :
         {OpCode::send, OpCode::receive, OpCode::sync, OpCode::wait, OpCode::stash, OpCode::snapshot}) {
        if (count_instructions(program, code) > 0) {
            return unsupported(to_string(code));
        }
    }
    TRY_ASSIGN(const ProgramFacts facts, examine_program(program, chain));
    if (facts.most_in_flight > 1) {
        return unsupported("more than one batch in flight");
    }
    return {};
}

Trainer::Trainer(Device device) : plans_(std::make_unique<PlanCache>(std::move(device))) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&& other) noexcept {
    workspace_ = std::move(other.workspace_);  // first: it refers to the plans
    plans_ = std::move(other.plans_);
    return *this;
}
Trainer::~Trainer() = default;

const Device& Trainer::device() const {
    return plans_->device();
}

/// The workspace of the last call when it fits; else a new one, so that never two are in memory.
Result<Workspace*> Trainer::workspace_for(const Chain& chain, std::uint64_t rows) {
    const auto capacity = static_cast<std::int64_t>(rows);
    const bool crowded = workspace_ && workspace_->prepared_row_counts() > max_prepared_row_counts;
    if (workspace_ && !crowded && workspace_->capacity() >= capacity && workspace_->chain() == chain) {
        return workspace_.get();
    }
    workspace_.reset();  // before its plans, and before new memory is asked for
    plans_ = std::make_unique<PlanCache>(plans_->device());
    TRY_ASSIGN(workspace_, Workspace::make(*plans_, chain, capacity));
    return workspace_.get();
}

/// The start model goes to the device, the program runs there, the end model comes back: the job itself is not touched.
Result<TrainResult> Trainer::train(const TrainJob& job, TrainerIo& io) {
    TRY(check_job(job));
    OptimizerState state = job.optimizer_state.value_or(
        OptimizerState::fresh(job.optimizer, job.chain.layer_count(), job.chain.parameter_count()));
    TRY(check_optimizer_state(job, state));
    const std::uint64_t examples = io.examples();
    if (examples == 0) {
        return TrainResult{.end = job.start, .optimizer_state = std::move(state)};
    }
    const std::uint64_t rows = job.batch == 0 ? examples : std::min<std::uint64_t>(job.batch, examples);
    TRY_ASSIGN(Workspace * workspace, workspace_for(job.chain, rows));
    TRY(workspace->prepare_training(state.moments.size()));
    TRY(workspace->put_model(job.start));
    TRY(workspace->put_moments(state.moments));
    TRY_ASSIGN(const RunTotals totals, Interpreter(job, *workspace, io, state.steps).run());
    TRY_ASSIGN(state.moments, workspace->get_moments());
    TRY_ASSIGN(ModelState end, workspace->get_model());
    return TrainResult{
        .end = std::move(end),
        .optimizer_state = std::move(state),
        .loss = totals.epoch_examples == 0 ? 0.0 : totals.epoch_loss / static_cast<double>(totals.epoch_examples),
        .examples = totals.examples,
        .steps = totals.steps,
        .seconds = totals.seconds};
}

Status TrainerIo::load_targets(const BatchPlace& place, std::span<float> features, std::span<float> targets) {
    if (targets.size() != place.rows) {
        return fail(ErrorKind::invalid, "no_targets",
                    fmt::format("the model's loss wants {} numbers an example, the data has one label",
                                targets.size() / std::max<std::uint64_t>(place.rows, 1)));
    }
    std::vector<std::int64_t> labels(place.rows);
    TRY(load(place, features, labels));
    std::ranges::transform(labels, targets.begin(), [](std::int64_t label) { return static_cast<float>(label); });
    return {};
}

/// Each batch goes through all layers, then `work` reads what it wants of the workspace.
Status Trainer::forward_batches(const Chain& chain, const ModelState& state, TrainerIo& io, std::uint32_t batch,
                                const BatchWork& work) {
    TRY(check_state(chain, state));
    const std::uint64_t examples = io.examples();
    if (examples == 0) {
        return fail(ErrorKind::invalid, "no_examples", "there are no examples to evaluate on");
    }
    const std::uint64_t size = batch == 0 ? examples : std::min<std::uint64_t>(batch, examples);
    TRY_ASSIGN(Workspace * workspace, workspace_for(chain, size));
    TRY(workspace->put_model(state));
    BatchLoader loader(chain, io);
    for (std::uint64_t first = 0; first < examples; first += size) {
        const BatchPlace place{.batch = first / size, .first = first, .rows = std::min(size, examples - first)};
        TRY(loader.load(place, *workspace));
        TRY(workspace->forward({0, static_cast<std::uint32_t>(chain.layer_count())}));
        TRY(work(*workspace, place, loader.labels()));
    }
    return {};
}

Result<Evaluation> Trainer::evaluate(const Chain& chain, const ModelState& state, TrainerIo& io, std::uint32_t batch) {
    Evaluation sum{.examples = io.examples()};
    std::uint64_t correct = 0;
    const auto add = [&](Workspace& workspace, const BatchPlace&, std::span<const std::int64_t>) -> Status {
        TRY_ASSIGN(const BatchLoss part, workspace.loss(Purpose::inference, 1.0));
        sum.loss += part.loss;
        correct += part.correct;
        return {};
    };
    TRY(forward_batches(chain, state, io, batch, add));
    sum.loss /= static_cast<double>(sum.examples);
    sum.accuracy = static_cast<double>(correct) / static_cast<double>(sum.examples);
    return sum;
}

Status Trainer::predict(const Chain& chain, const ModelState& state, TrainerIo& io, const ScoresSink& sink,
                        std::uint32_t batch) {
    const auto classes = static_cast<std::size_t>(chain.classes());
    std::vector<float> scores;
    const auto hand_on = [&](const Workspace& workspace, const BatchPlace& place,
                             std::span<const std::int64_t> labels) -> Status {
        scores.resize(place.rows * classes);
        TRY(workspace.scores(scores));
        const auto bad = std::ranges::find_if(scores, [](float score) { return !std::isfinite(score); });
        if (bad != scores.end()) {
            const auto row = place.first + static_cast<std::uint64_t>(bad - scores.begin()) / classes;
            return fail(ErrorKind::corrupt, "not_finite",
                        fmt::format("the model's scores for example {} are not finite: its training went wrong, or "
                                    "the values are scaled otherwise than in training",
                                    row + 1));
        }
        return sink(place, scores, labels);
    };
    return forward_batches(chain, state, io, batch, hand_on);
}

}  // namespace causeway
