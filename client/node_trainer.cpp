// See node_trainer.h.
#include "client/node_trainer.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "model/checkpoint.h"
#include "common/text.h"
#include "model/footprint.h"

namespace causeway::node {
namespace {

/// What the kernel says that programs may still take; nothing where it does not say.
std::optional<std::uint64_t> available_bytes() {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("MemAvailable:")) {
            return std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) * 1024;
        }
    }
    return std::nullopt;
}

/// Refused before anything is allocated: a machine that swaps or kills helps nobody.
Status check_memory(const Assign& assign, std::size_t examples) {
    TRY_ASSIGN(const auto chain, Chain::from_architecture(assign.architecture));
    TRY_ASSIGN(const auto optimizer, parse_optimizer(assign.optimizer));
    const auto batch = static_cast<std::int64_t>(
        assign.batch == 0 ? examples : std::min<std::size_t>(assign.batch, examples));
    TRY_ASSIGN(const auto needed, footprint_of(chain, optimizer, std::max<std::int64_t>(batch, 1)));
    const auto available = available_bytes();
    if (available && needed.total_bytes() > *available) {
        return fail(ErrorKind::overloaded, "does_not_fit",
                    fmt::format("{}; this machine has {} left: use a smaller batch or model", to_text(needed, batch),
                                format_bytes(*available)));
    }
    return {};
}

constexpr Duration progress_beat = std::chrono::milliseconds(50);  // the session sends fewer still

constexpr std::size_t most_early = 256;  // messages: a few batches of each group of a host

constexpr std::uint64_t evaluation_slice = 4096;  // examples: tens of milliseconds of small models

}  // namespace

NodeTrainer::NodeTrainer(std::string node, Device device, std::map<std::string, std::filesystem::path> datasets)
    : node_(std::move(node)),
      datasets_(std::move(datasets)),
      trainer_(std::move(device)),
      thread_(std::make_unique<WorkThread>()) {}

NodeTrainer::~NodeTrainer() {
    close();
}

void NodeTrainer::close() {
    stop();
    thread_->post([this] { turns_.clear(); });
    thread_->close();
}

void NodeTrainer::train(Assign assign, SharedBytes model, StateSections base, Progress progress,
                        std::function<void(Result<TrainingOutput>)> done) {
    struct Job {
        Assign assign;
        SharedBytes model;
        StateSections base;
    };
    const auto job = std::make_shared<Job>(Job{std::move(assign), std::move(model), std::move(base)});
    thread_->post([this, job, generation = generation_.load(), progress = std::move(progress), done = std::move(done)] {
        done(train_now(job->assign, job->model, job->base, progress, generation));
    });
}

Result<TrainingOutput> NodeTrainer::train_now(const Assign& assign, ByteView model, const StateSections& base,
                                              const Progress& progress, std::uint64_t generation) {
    TRY_ASSIGN(const auto file, dataset_for(assign));
    TRY(check_memory(assign, file->train.size()));
    const TrainingInput input{.assign = assign, .node = node_, .model = model, .dataset = file->train, .base = base};
    auto told_at = real_now();
    TrainingHooks hooks;
    hooks.progress = [&](std::uint64_t step, std::uint64_t steps, double loss) {
        if (real_now() - told_at >= progress_beat || step == steps) {
            told_at = real_now();
            progress(step, steps, loss);
        }
    };
    hooks.stop_requested = [&] { return generation_.load() != generation; };
    return train_assignment(trainer_, input, hooks, real_now);
}

// ---------------------------------------------------------------- turns

void NodeTrainer::run_turn(Assign assign, SharedBytes segment, Progress progress,
                           std::function<void(std::uint32_t cell, StreamData message)> send,
                           std::function<void(Result<TurnOutput>)> done) {
    const auto shared = std::make_shared<const Assign>(std::move(assign));
    thread_->post([this, shared, segment = std::move(segment), progress = std::move(progress), send = std::move(send),
                   done = std::move(done)] {
        std::shared_ptr<const DatasetFile> file;  // kept while the turn reads it
        auto begun = [&]() -> Result<std::unique_ptr<TurnWork>> {
            if (shared->data_node == node_) {
                TRY_ASSIGN(file, dataset_for(*shared));
            }
            TurnHooks hooks{.send = send, .progress = {}, .stop_requested = {}, .clock = real_now};
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
            return done(fail(begun.error()));
        }
        const auto key = key_of(shared->lease);
        turns_[key] = {file, *std::move(begun), done};
        for (auto early = early_.begin(); early != early_.end();) {
            const bool own = key_of(early->second.lease) == key;
            if (own) {
                (void)turns_.at(key).work->deliver(early->second);
            }
            early = own ? early_.erase(early) : std::next(early);
        }
        advance(key);
    });
}

void NodeTrainer::deliver(const std::string& node, StreamData message) {
    thread_->post([this, node, message = std::move(message)]() mutable {
        const auto key = key_of(message.lease);
        const auto found = turns_.find(key);
        if (found == turns_.end()) {
            early_.emplace_back(node, std::move(message));
            if (early_.size() > most_early) {
                early_.pop_front();
            }
            return;
        }
        const auto& peers = found->second.work->assign().peers;
        const bool peer = std::ranges::any_of(
            peers, [&](const auto& other) { return other.node == node && other.cell == message.cell; });
        if (!peer) {
            return;  // somebody on the roster, for another turn
        }
        if (const auto taken = found->second.work->deliver(message); !taken) {
            return end(key, fail(taken.error()));
        }
        advance(key);
    });
}

void NodeTrainer::advance(const TurnKey& key) {
    const auto found = turns_.find(key);
    if (found == turns_.end()) {
        return;
    }
    const auto state = found->second.work->advance();
    if (!state) {
        end(key, fail(state.error()));
    } else if (*state == TurnWork::State::finished) {
        end(key, found->second.work->finish());
    }
}

void NodeTrainer::end(const TurnKey& key, Result<TurnOutput> result) {
    auto turn = std::move(turns_.extract(key).mapped());
    turn.done(std::move(result));
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
            end(key, fail(ErrorKind::disconnected, "stream_lost",
                          fmt::format("the connection to {} is gone: {}", node, why.message)));
        }
    });
}

void NodeTrainer::stop_turn(const Lease& lease) {
    thread_->post([this, key = key_of(lease)] { turns_.erase(key); });
}

// ---------------------------------------------------------------- evaluation

/// One evaluation at work. It keeps its own examples: a training of another experiment may change what is loaded.
struct NodeTrainer::Evaluation {
    Assign assign;
    Bytes model;
    std::function<void(Result<Figures>)> done;
    std::optional<Chain> chain{};
    ModelState state{};
    Dataset held_out{};
    std::optional<FiguresSum> sum{};
};

void NodeTrainer::evaluate(Assign assign, Bytes model, std::function<void(Result<Figures>)> done) {
    const auto evaluation =
        std::make_shared<Evaluation>(Evaluation{std::move(assign), std::move(model), std::move(done)});
    thread_->post([this, evaluation] {
        const auto begun = [&]() -> Status {
            TRY_ASSIGN(const auto file, dataset_for(evaluation->assign));
            if (!file->test) {
                return fail(ErrorKind::not_found, "no_holdout",
                            fmt::format("nothing of \"{}\" is held out at this node", evaluation->assign.dataset));
            }
            TRY_ASSIGN(evaluation->chain, Chain::from_architecture(evaluation->assign.architecture));
            TRY(check_dataset_fits(*file->test, *evaluation->chain));
            TRY_ASSIGN(evaluation->state, from_safetensors(*evaluation->chain, evaluation->model));
            evaluation->model = {};
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
    if (const auto added = evaluation->sum->add_next(trainer_, evaluation->state, evaluation_slice); !added) {
        return evaluation->done(fail(added.error()));
    }
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
