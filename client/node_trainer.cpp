// See node_trainer.h.
#include "client/node_trainer.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "common/text.h"
#include "data/reader.h"
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

}  // namespace

NodeTrainer::NodeTrainer(std::string node, Device device, std::map<std::string, std::filesystem::path> datasets)
    : node_(std::move(node)),
      datasets_(std::move(datasets)),
      trainer_(std::move(device)),
      thread_(std::make_unique<WorkThread>()) {}

NodeTrainer::~NodeTrainer() {
    stop();
    thread_.reset();
}

void NodeTrainer::train(Assign assign, std::shared_ptr<const Bytes> model, StateSections base, Progress progress,
                        std::function<void(Result<TrainingOutput>)> done) {
    struct Job {
        Assign assign;
        std::shared_ptr<const Bytes> model;
        StateSections base;
    };
    const auto job = std::make_shared<Job>(Job{std::move(assign), std::move(model), std::move(base)});
    thread_->post([this, job, generation = generation_.load(), progress = std::move(progress), done = std::move(done)] {
        done(train_now(job->assign, *job->model, job->base, progress, generation));
    });
}

Result<TrainingOutput> NodeTrainer::train_now(const Assign& assign, const Bytes& model, const StateSections& base,
                                              const Progress& progress, std::uint64_t generation) {
    TRY_ASSIGN(const auto* dataset, dataset_for(assign));
    TRY(check_memory(assign, dataset->size()));
    const TrainingInput input{.assign = assign, .node = node_, .model = model, .dataset = *dataset, .base = base};
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

Result<const Dataset*> NodeTrainer::dataset_for(const Assign& assign) {
    const auto key = assign.dataset + " " + assign.data_options;
    const auto known = loaded_.find(key);
    if (known != loaded_.end()) {
        return &known->second;
    }
    const auto path = datasets_.find(assign.dataset);
    if (path == datasets_.end()) {
        return fail(
            ErrorKind::not_found, "unknown_dataset",
            fmt::format("this node holds no dataset \"{}\"; join with --data {}=PATH", assign.dataset, assign.dataset));
    }
    TRY_ASSIGN(const auto options, parse_data_options(assign.data_options));
    TRY_ASSIGN(auto dataset, read_dataset(path->second, options));
    dataset.name = assign.dataset;
    loaded_.clear();  // one at a time: a node works on one experiment
    return &loaded_.emplace(key, std::move(dataset)).first->second;
}

}  // namespace causeway::node
