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
#include <tuple>

#include "client/early_messages.h"
#include "client/memory_budget.h"
#include "client/slow_device.h"
#include "client/training_work.h"
#include "client/turn_work.h"
#include "common/queue.h"
#include "common/work_thread.h"
#include "configs/dataset_file.h"
#include "configs/evaluate.h"

namespace causeway::node {

class NodeTrainer {
public:
    struct Means {
        std::uint64_t memory = 0;  // bytes for models, 0: what the machine has
        double slow = 1;           // how many times as long all computing is made to take, at least 1
    };
    NodeTrainer(std::string node, Device device, std::map<std::string, std::filesystem::path> datasets, Means means);
    ~NodeTrainer();
    NodeTrainer(const NodeTrainer&) = delete;
    NodeTrainer& operator=(const NodeTrainer&) = delete;

    /// Ends all work and the thread; calls from then on have no effect. Before what its callbacks use goes.
    void close();

    using Progress = std::function<void(std::uint64_t step, std::uint64_t steps, double loss)>;
    /// Called on the trainer's thread.
    struct Calls {
        Progress progress;
        /// It goes on with a kept run, after so many steps.
        std::function<void(std::uint64_t steps)> resumed;
        /// Keeps a run under way and says when that is over, on any thread.
        std::function<void(KeptRun run, std::function<void()> kept)> keep;
        std::function<void(Result<TrainingOutput>)> done;
    };
    /// From its start, or from where a run of the same training was kept.
    void train(Assign assign, TrainingStart start, Calls calls);
    /// A cell's turn, between the steps of which other turns go on. `send` is called on the trainer's thread.
    void run_turn(Assign assign, SharedBytes segment, Progress progress,
                  std::function<void(std::uint32_t cell, StreamData message)> send,
                  std::function<void(TurnEnd)> done);
    /// What a peer has sent for a turn here. One that has not begun yet keeps it for a while.
    void deliver(const std::string& node, StreamData message);
    /// The streams with that node are gone: turns that need it break off with `stream_lost`.
    void lose_peer(const std::string& node, const Error& why);
    void stop_turn(const Lease& lease);
    /// The experiment is over, or not of this node any more: what its groups had is free.
    void forget(std::uint64_t experiment);
    /// On the held-out examples, in slices between which a training goes first.
    ///
    /// errors of the answer  not_found `no_holdout`: nothing is held out here; as the dataset's and the model's
    void evaluate(Assign assign, TrainingStart start, std::function<void(Result<Figures>)> done);
    /// threads  thread-safe
    void stop() { ++generation_; }

private:
    struct Evaluation;
    /// One turn under way, and whom to tell of its end.
    struct RunningTurn {
        std::shared_ptr<const DatasetFile> file;  // that the work reads; nullptr: a host's
        std::unique_ptr<TurnWork> work;
        std::function<void(TurnEnd)> done;
    };
    using TurnKey = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t>;  // the lease's numbers
    static TurnKey key_of(const Lease& lease) { return {lease.epoch, lease.experiment, lease.round, lease.attempt}; }
    void advance(const TurnKey& key);
    void end(const TurnKey& key, TurnEnd end);
    class Keeper;
    Status check_memory(const Assign& assign, std::size_t examples);
    Status check_turn_memory(const Assign& assign);
    void go_on(const std::shared_ptr<Evaluation>& evaluation);
    Result<std::shared_ptr<const DatasetFile>> dataset_for(const Assign& assign);
    Result<TrainingOutput> train_now(const Assign& assign, const TrainingStart& start, const Calls& calls,
                                     std::uint64_t generation);

    std::string node_;
    std::map<std::string, std::filesystem::path> datasets_;
    std::map<std::string, std::shared_ptr<const DatasetFile>> loaded_;  // trainer thread; by name, options and seed
    Trainer trainer_;                            // trainer thread
    BoundedQueue<int> closing_{1};               // closed when the thread is to end: no pause goes on then
    SlowDevice slow_;                            // trainer thread
    std::map<TurnKey, RunningTurn> turns_;       // trainer thread
    EarlyMessages early_;                        // trainer thread
    MemoryBudget memory_;                        // trainer thread
    std::atomic<std::uint64_t> generation_{0};   // a training stops when it is no longer the one it began with
    std::unique_ptr<WorkThread> thread_;
};

}  // namespace causeway::node
