// The workspace that is kept between jobs, and evaluation. Jobs under way are in training_run.cpp.
#include "model/trainer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/batch_loader.h"
#include "model/training_run.h"
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

/// The first instruction that moves parameters between cells, or nullptr.
const Instruction* moves_parameters(const std::vector<Instruction>& instructions) {
    for (const Instruction& instruction : instructions) {
        if (instruction.payload == Payload::parameters) {
            return &instruction;
        }
        if (const Instruction* inside = moves_parameters(instruction.body)) {
            return inside;
        }
    }
    return nullptr;
}

/// The first snapshot of a range set, or nullptr.
const Instruction* copies_ranges(const std::vector<Instruction>& instructions) {
    for (const Instruction& instruction : instructions) {
        if (instruction.code == OpCode::snapshot && !instruction.keeps_run()) {
            return &instruction;
        }
        if (const Instruction* inside = copies_ranges(instruction.body)) {
            return inside;
        }
    }
    return nullptr;
}

}  // namespace

Status check_runnable(const Program& program, const Chain& chain) {
    if (const Instruction* instruction = moves_parameters(program.instructions)) {
        return unsupported("parameters as what to " + std::string(to_string(instruction->code)));
    }
    if (const Instruction* copy = copies_ranges(program.instructions)) {
        return unsupported(to_string(copy->code));
    }
    for (const OpCode code : {OpCode::sync, OpCode::wait}) {
        if (count_instructions(program, code) > 0) {
            return unsupported(to_string(code));
        }
    }
    if (count_instructions(program, OpCode::stash) > 0 && stashed_passes(program) == 0) {
        return unsupported(to_string(OpCode::stash));
    }
    TRY_ASSIGN(const ProgramFacts facts, examine_program(program, chain));
    if (facts.most_in_flight > 1) {
        return unsupported("more than one batch in flight");
    }
    return {};
}

Trainer::Trainer(Device device) : device_(std::move(device)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

const Device& Trainer::device() const {
    return device_;
}

/// The workspace of the last job when it fits and nobody has it; else a new one, before which the old one's memory goes
/// unless a job under way has it. Who is given one only lets go of it.
Result<std::shared_ptr<Workspace>> Trainer::workspace_for(const Chain& chain, const Segment& segment,
                                                          std::uint64_t rows, Compute compute,
                                                          const std::vector<LayerInterval>* recomputed) {
    const auto capacity = static_cast<std::int64_t>(rows);
    const bool idle = last_ != nullptr && last_.use_count() == 1;
    const bool planned = idle && (recomputed == nullptr || last_->recomputed() == *recomputed);
    if (planned && last_->prepared_row_counts() <= max_prepared_row_counts && last_->capacity() >= capacity &&
        last_->plans().compute() == compute && last_->chain() == chain && last_->segment() == segment) {
        return last_;
    }
    // Jobs under way share plans; between jobs all that was prepared for another shape goes.
    const bool share = last_ != nullptr && !idle && last_->plans().compute() == compute;
    auto plans = share ? last_->shared_plans() : std::make_shared<PlanCache>(device_, compute);
    last_.reset();
    TRY_ASSIGN(last_, Workspace::make(std::move(plans), chain, segment, capacity,
                                      recomputed == nullptr ? std::vector<LayerInterval>{} : *recomputed));
    return last_;
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
    const Segment whole = Segment::whole(chain);
    TRY(check_model_state(whole, state));
    const std::uint64_t examples = io.examples();
    if (examples == 0) {
        return fail(ErrorKind::invalid, "no_examples", "there are no examples to evaluate on");
    }
    const std::uint64_t size = batch == 0 ? examples : std::min<std::uint64_t>(batch, examples);
    TRY_ASSIGN(const auto workspace, workspace_for(chain, whole, size, Compute::f32, nullptr));
    return run_batches(*workspace, state, io, size, work);
}

Status Trainer::run_batches(Workspace& workspace, const ModelState& state, TrainerIo& io, std::uint64_t size,
                            const BatchWork& work) {
    const Chain& chain = workspace.chain();
    const std::uint64_t examples = io.examples();
    TRY(workspace.put_model(state));
    BatchLoader loader(chain, io);
    for (std::uint64_t first = 0; first < examples; first += size) {
        const BatchPlace place{.batch = first / size, .first = first, .rows = std::min(size, examples - first)};
        TRY(loader.load(place, workspace));
        TRY(workspace.forward({0, static_cast<std::uint32_t>(chain.layer_count())}, Purpose::inference));
        TRY(work(workspace, place, loader.labels()));
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
