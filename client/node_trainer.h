// The node's one trainer thread: owns the device, reads datasets as assignments ask for them, and trains.
//
// Every call posts; answers come through callbacks from the trainer's thread. stop() ends the running training at the
// next batch.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "client/training_work.h"
#include "common/work_thread.h"
#include "configs/dataset_file.h"
#include "configs/evaluate.h"

namespace causeway::node {

class NodeTrainer {
public:
    NodeTrainer(std::string node, Device device, std::map<std::string, std::filesystem::path> datasets);
    ~NodeTrainer();
    NodeTrainer(const NodeTrainer&) = delete;
    NodeTrainer& operator=(const NodeTrainer&) = delete;

    using Progress = std::function<void(std::uint64_t step, std::uint64_t steps, double loss)>;
    void train(Assign assign, SharedBytes model, StateSections base, Progress progress,
               std::function<void(Result<TrainingOutput>)> done);
    /// On the held-out examples, in slices between which a training goes first.
    ///
    /// errors of the answer  not_found `no_holdout`: nothing is held out here; as the dataset's and the model's
    void evaluate(Assign assign, Bytes model, std::function<void(Result<Figures>)> done);
    /// threads  thread-safe
    void stop() { ++generation_; }

private:
    struct Evaluation;
    void go_on(const std::shared_ptr<Evaluation>& evaluation);
    Result<const DatasetFile*> dataset_for(const Assign& assign);
    Result<TrainingOutput> train_now(const Assign& assign, ByteView model, const StateSections& base,
                                     const Progress& progress, std::uint64_t generation);

    std::string node_;
    std::map<std::string, std::filesystem::path> datasets_;
    std::map<std::string, DatasetFile> loaded_;  // trainer thread; by name, options and seed
    Trainer trainer_;                            // trainer thread
    std::atomic<std::uint64_t> generation_{0};   // a training stops when it is no longer the one it began with
    std::unique_ptr<WorkThread> thread_;
    WorkThread* worker_;  // the same, for the thread itself while it is being joined
};

}  // namespace causeway::node
