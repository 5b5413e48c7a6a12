// See node_trainer.h.
#include "client/node_trainer.h"

#include <fmt/format.h>

namespace causeway::node {
namespace {

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

void NodeTrainer::train(Assign assign, Bytes model, StateSections base, Progress progress,
                        std::function<void(Result<TrainingOutput>)> done) {
    struct Job {
        Assign assign;
        Bytes model;
        StateSections base;
    };
    const auto job = std::make_shared<Job>(Job{std::move(assign), std::move(model), std::move(base)});
    thread_->post([this, job, generation = generation_.load(), progress = std::move(progress), done = std::move(done)] {
        done(train_now(job->assign, job->model, job->base, progress, generation));
    });
}

Result<TrainingOutput> NodeTrainer::train_now(const Assign& assign, const Bytes& model, const StateSections& base,
                                              const Progress& progress, std::uint64_t generation) {
    TRY_ASSIGN(const auto* file, dataset_for(assign));
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

Result<const DatasetFile*> NodeTrainer::dataset_for(const Assign& assign) {
    const auto key = fmt::format("{} {} {}", assign.dataset, assign.data_options, assign.seed);
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
    TRY_ASSIGN(auto file, read_dataset_file(path->second, options));
    file.train.name = assign.dataset;
    TRY(prepare_examples(file, options, assign.seed));
    loaded_.clear();  // one at a time: a node works on one experiment
    return &loaded_.emplace(key, std::move(file)).first->second;
}

}  // namespace causeway::node
