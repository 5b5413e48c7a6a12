// See node_trainer.h.
#include "client/node_trainer.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "common/log.h"
#include "common/machine.h"
#include "common/text.h"
#include "configs/snapshot_rule.h"
#include "configs/statistics.h"
#include "model/checkpoint.h"
#include "model/footprint.h"
#include "model/segment.h"
#include "split/segment_memory.h"

namespace causeway::node {
namespace {

/// The footprint of a training's rows at once, as text and sum.
struct WorkNeed {
    Footprint footprint;
    std::int64_t rows = 0;
};

Result<WorkNeed> memory_needed(const Assign& assign, std::size_t examples) {
    TRY_ASSIGN(const auto chain, Chain::from_architecture(assign.architecture));
    TRY_ASSIGN(const auto optimizer, parse_optimizer(assign.optimizer));
    TRY_ASSIGN(const auto program, parse_program(assign.program));
    const std::size_t batch = assign.batch == 0 ? examples : std::min<std::size_t>(assign.batch, examples);
    const bool in_parts = assign.microbatch > 0 && works_by_microbatch(program);
    const auto rows = static_cast<std::int64_t>(in_parts ? std::min<std::size_t>(assign.microbatch, batch) : batch);
    TRY(check_program(program, chain));  // its blocks lie in the chain
    TRY_ASSIGN(const auto footprint,
               footprint_of(chain, optimizer, std::max<std::int64_t>(rows, 1), recomputed_blocks(program)));
    return WorkNeed{footprint, rows};
}

/// Of each batch that an overlap puts away: its values, half of what a batch has, and the parameters it went forward
/// with. A program that cannot be read is refused later, with its place.
std::uint64_t stash_of(const Assign& assign, const Chain& chain, const std::vector<LayerInterval>& layers,
                       std::uint64_t batch_bytes) {
    const auto program = parse_program(assign.program);
    std::uint64_t parameters = 0;
    for (const auto& part : layers) {
        parameters += chain.arena_range(ArenaKind::trainable, part.begin, part.end).size();
    }
    return program ? stashed_passes(*program) * (batch_bytes / 2 + sizeof(float) * parameters) : 0;
}

constexpr Duration progress_beat = std::chrono::milliseconds(50);  // the session sends fewer still

constexpr std::uint64_t evaluation_slice = 4096;  // examples: tens of milliseconds of small models

}  // namespace

NodeTrainer::NodeTrainer(std::string node, Device device, std::map<std::string, std::filesystem::path> datasets,
                         Means means)
    : node_(std::move(node)),
      datasets_(std::move(datasets)),
      trainer_(std::move(device)),
      slow_(means.slow, real_now, [this](Duration pause) { (void)closing_.pop_for(pause); }),
      memory_(means.memory, available_memory),
      thread_(std::make_unique<WorkThread>()) {}

NodeTrainer::~NodeTrainer() {
    close();
}

void NodeTrainer::close() {
    stop();
    closing_.close();
    thread_->post([this] { turns_.clear(); });
    thread_->close();
}

/// What the last training was given is given up for the next one, or serves it again: it counts as free.
Status NodeTrainer::check_memory(const Assign& assign, std::size_t examples) {
    TRY_ASSIGN(const WorkNeed need, memory_needed(assign, examples));
    return memory_.take_training(need.footprint.total_bytes(), to_text(need.footprint, need.rows));
}

Status NodeTrainer::check_turn_memory(const Assign& assign) {
    TRY_ASSIGN(const auto chain, Chain::from_architecture(assign.architecture));
    TRY_ASSIGN(const auto optimizer, parse_optimizer(assign.optimizer));
    TRY_ASSIGN(const auto layers, parse_intervals(assign.segment));
    TRY(Segment::make(chain, layers));  // they lie in the chain
    const auto memory = segment_memory(chain, layers, optimizer.kind->moments(optimizer));
    const auto rows = assign.batch == 0 ? assign.examples : std::min<std::uint64_t>(assign.batch, assign.examples);
    const auto waiting = stash_of(assign, chain, layers, memory.per_row * rows);
    return memory_.take({assign.lease.experiment, assign.lease.round, assign.group}, memory.of(rows) + waiting,
                        memory.once,
                        "layers " + assign.segment + " of " + assign.experiment_name + ": " +
                            to_text(memory, 1, rows) +
                            (waiting > 0 ? " and " + format_bytes(waiting) + " for batches that wait" : ""));
}

void NodeTrainer::forget(std::uint64_t experiment) {
    thread_->post([this, experiment] {
        memory_.forget(experiment);
        early_.forget(experiment);
    });
}

/// Decides when the run is kept. One write at a time is under way, beside the training.
class NodeTrainer::Keeper {
public:
    Keeper(const Assign& assign, const Digest& job, const SnapshotRule& rule, const Calls& calls)
        : assign_(assign), job_(job), rule_(rule), calls_(calls) {}

    bool due() {
        since_.time = real_now() - last_;
        ++since_.batches;
        since_.cost = Duration(writes_->cost.load());
        return !writes_->busy.load() && snapshot_due(rule_, since_);
    }
    void keep(const RunSnapshot& snapshot) {
        const auto begin = real_now();
        writes_->busy = true;
        KeptRun run{
            .round = assign_.lease.round, .start_model = assign_.model, .job = job_, .run = encode_run(snapshot)};
        calls_.keep(std::move(run), [writes = writes_, begin] {
            writes->cost = (real_now() - begin).count();
            writes->busy = false;
        });
        last_ = real_now();
        since_ = {};
    }

private:
    struct Writes {
        std::atomic<bool> busy{false};
        std::atomic<Duration::rep> cost{0};  // of the last one, with its copy
    };
    const Assign& assign_;
    Digest job_;
    SnapshotRule rule_;
    const Calls& calls_;
    std::shared_ptr<Writes> writes_ = std::make_shared<Writes>();  // outlives the training: a write may end later
    Instant last_ = real_now();
    SinceSnapshot since_;
};

namespace {

/// Where a kept run of the same training is, if it is readable.
std::optional<RunSnapshot> kept_run(const TrainingStart& start, const Digest& job) {
    if (!start.run || start.run->job != job) {
        return std::nullopt;
    }
    auto run = decode_run(start.run->run);
    if (!run) {
        log_warn("node", "the round is trained from its start: " + run.error().message);
        return std::nullopt;
    }
    return *std::move(run);
}

}  // namespace

void NodeTrainer::train(Assign assign, TrainingStart start, Calls calls) {
    struct Job {
        Assign assign;
        TrainingStart start;
        Calls calls;
    };
    const auto job = std::make_shared<Job>(Job{std::move(assign), std::move(start), std::move(calls)});
    thread_->post([this, job, generation = generation_.load()] {
        job->calls.done(train_now(job->assign, job->start, job->calls, generation));
    });
}

Result<TrainingOutput> NodeTrainer::train_now(const Assign& assign, const TrainingStart& start, const Calls& calls,
                                              std::uint64_t generation) {
    TRY_ASSIGN(const auto file, dataset_for(assign));
    if (assign.program == statistics_program) {
        return sum_columns(assign, file->train, real_now);
    }
    TRY(check_memory(assign, file->train.size()));
    TRY_ASSIGN(const auto rule, parse_snapshot_rule(assign.snapshot_every));
    TrainingInput input{
        .assign = assign, .node = node_, .model = start.model.view(), .dataset = file->train, .base = start.base};
    const Digest job = training_digest(input, file->digest, trainer_.device().signature());
    input.resume = kept_run(start, job);
    if (input.resume) {
        calls.resumed(input.resume->totals.steps);
    }
    Keeper keeper(assign, job, rule, calls);
    auto told_at = real_now();
    TrainingHooks hooks;
    hooks.progress = [&](std::uint64_t step, std::uint64_t steps, double loss) {
        if (real_now() - told_at >= progress_beat || step == steps) {
            told_at = real_now();
            calls.progress(step, steps, loss);
        }
    };
    hooks.stop_requested = [&] { return generation_.load() != generation; };
    hooks.wants_snapshot = [&] { return keeper.due(); };
    hooks.keep = [&](const RunSnapshot& snapshot) { keeper.keep(snapshot); };
    slow_.resume();
    return train_assignment(trainer_, input, hooks, [this] { return slow_.now(); });
}

// ---------------------------------------------------------------- turns

void NodeTrainer::run_turn(Assign assign, SharedBytes segment, Progress progress,
                           std::function<void(std::uint32_t cell, StreamData message)> send,
                           std::function<void(TurnEnd)> done) {
    const auto shared = std::make_shared<const Assign>(std::move(assign));
    thread_->post([this, shared, segment = std::move(segment), progress = std::move(progress), send = std::move(send),
                   done = std::move(done)] {
        std::shared_ptr<const DatasetFile> file;  // kept while the turn reads it
        auto begun = [&]() -> Result<std::unique_ptr<TurnWork>> {
            TRY(check_turn_memory(*shared));
            if (shared->data_node == node_) {
                TRY_ASSIGN(file, dataset_for(*shared));
            }
            slow_.resume();
            TurnHooks hooks{
                .send = send, .progress = {}, .stop_requested = {}, .clock = [this] { return slow_.now(); }};
            hooks.progress = [progress, told_at = real_now()](std::uint64_t step, std::uint64_t steps,
                                                              double loss) mutable {
                if (real_now() - told_at >= progress_beat || step == steps) {
                    told_at = real_now();
                    progress(step, steps, loss);
                }
            };
            return TurnWork::begin(trainer_, *shared, segment.view(), file ? &file->train : nullptr, std::move(hooks));
        }();
        if (!begun) {
            return done({fail(begun.error())});
        }
        const auto key = key_of(shared->lease);
        turns_[key] = {file, *std::move(begun), done};
        for (const auto& early : early_.take(shared->lease)) {
            (void)turns_.at(key).work->deliver(early);
        }
        advance(key);
    });
}

void NodeTrainer::deliver(const std::string& node, StreamData message) {
    thread_->post([this, node, message = std::move(message)]() mutable {
        const auto key = key_of(message.lease);
        const auto found = turns_.find(key);
        if (found == turns_.end()) {
            return early_.put(node, std::move(message));
        }
        const auto& peers = found->second.work->assign().peers;
        const bool peer = std::ranges::any_of(
            peers, [&](const auto& other) { return other.node == node && other.cell == message.cell; });
        if (!peer) {
            return;  // somebody on the roster, for another turn
        }
        if (const auto taken = found->second.work->deliver(message); !taken) {
            return end(key, {fail(taken.error()), node});
        }
        advance(key);
    });
}

void NodeTrainer::advance(const TurnKey& key) {
    const auto found = turns_.find(key);
    if (found == turns_.end()) {
        return;
    }
    slow_.resume();
    const auto state = found->second.work->advance();
    if (!state) {
        end(key, {fail(state.error()), found->second.work->blamed(state.error())});
    } else if (*state == TurnWork::State::finished) {
        end(key, {found->second.work->finish()});
    }
}

void NodeTrainer::end(const TurnKey& key, TurnEnd end) {
    auto turn = std::move(turns_.extract(key).mapped());
    turn.done(std::move(end));
}

void NodeTrainer::lose_peer(const std::string& node, const Error& why) {
    thread_->post([this, node, why] {
        std::vector<TurnKey> lost;
        for (const auto& [key, turn] : turns_) {
            const auto& peers = turn.work->assign().peers;
            if (std::ranges::any_of(peers, [&](const auto& peer) { return peer.node == node; })) {
                lost.push_back(key);
            }
        }
        for (const auto& key : lost) {
            end(key, {fail(ErrorKind::disconnected, "stream_lost",
                           fmt::format("the connection to {} is gone: {}", node, why.message)),
                      node});
        }
    });
}

void NodeTrainer::stop_turn(const Lease& lease) {
    thread_->post([this, lease] {
        turns_.erase(key_of(lease));
        early_.forget(lease);
    });
}

// ---------------------------------------------------------------- evaluation

/// One evaluation at work. It keeps its own examples: a training of another experiment may change what is loaded.
struct NodeTrainer::Evaluation {
    Assign assign;
    TrainingStart start;
    std::function<void(Result<Figures>)> done;
    std::optional<Chain> chain{};
    ModelState state{};
    Dataset held_out{};
    std::optional<FiguresSum> sum{};
};

void NodeTrainer::evaluate(Assign assign, TrainingStart start, std::function<void(Result<Figures>)> done) {
    const auto evaluation =
        std::make_shared<Evaluation>(Evaluation{std::move(assign), std::move(start), std::move(done)});
    thread_->post([this, evaluation] {
        const auto begun = [&]() -> Status {
            TRY_ASSIGN(const auto file, dataset_for(evaluation->assign));
            if (!file->test) {
                return fail(ErrorKind::not_found, "no_holdout",
                            fmt::format("nothing of \"{}\" is held out at this node", evaluation->assign.dataset));
            }
            TRY_ASSIGN(evaluation->chain, Chain::from_architecture(evaluation->assign.architecture));
            TRY(check_dataset_fits(*file->test, *evaluation->chain));
            TRY_ASSIGN(evaluation->state, start_of(*evaluation->chain, evaluation->start.model.view(),
                                                   evaluation->start.base, evaluation->assign.lease.round));
            evaluation->start = {};
            evaluation->held_out = *file->test;
            evaluation->sum.emplace(*evaluation->chain, evaluation->held_out);
            return {};
        }();
        if (!begun) {
            return evaluation->done(fail(begun.error()));
        }
        go_on(evaluation);
    });
}

/// A slice, then behind whatever was posted meanwhile: a training waits for one slice at most, and each evaluation
/// gets one between two trainings.
void NodeTrainer::go_on(const std::shared_ptr<Evaluation>& evaluation) {
    slow_.resume();
    if (const auto added = evaluation->sum->add_next(trainer_, evaluation->state, evaluation_slice); !added) {
        return evaluation->done(fail(added.error()));
    }
    (void)slow_.now();
    if (evaluation->sum->done()) {
        return evaluation->done(evaluation->sum->finish());
    }
    thread_->post([this, evaluation] { go_on(evaluation); });
}

Result<std::shared_ptr<const DatasetFile>> NodeTrainer::dataset_for(const Assign& assign) {
    const auto key = fmt::format("{} {} {}", assign.dataset, assign.data_options, assign.seed);
    const auto known = loaded_.find(key);
    if (known != loaded_.end()) {
        return known->second;
    }
    const auto path = datasets_.find(assign.dataset);
    if (path == datasets_.end()) {
        return fail(
            ErrorKind::not_found, "unknown_dataset",
            fmt::format("this node holds no dataset \"{}\"; join with --data {}=PATH", assign.dataset, assign.dataset));
    }
    TRY_ASSIGN(const auto options, parse_data_options(assign.data_options));
    TRY_ASSIGN(auto file, read_dataset_file(path->second, options));
    file.train.name = assign.dataset;
    TRY(prepare_examples(file, options, assign.seed));
    loaded_.clear();  // one at a time: a node works on one experiment
    return loaded_.emplace(key, std::make_shared<const DatasetFile>(std::move(file))).first->second;
}

}  // namespace causeway::node
