// The real computing behind the virtual world: the same model, data, trainer and sums as the daemon's, in memory.
//
// `causeway simulate` uses it; its final digest is the one that real processes reach with the same file and data.
// Virtual times are a simple cost model, so that a run does not depend on how fast this machine is. Thread: one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "client/training_work.h"
#include "configs/dataset_file.h"
#include "coordinator/experiment_work.h"
#include "simulation/work.h"

namespace causeway::simulation {

/// Of a training of all layers, per example and epoch, where nothing else is said and the slowness is 1.
constexpr Duration training_per_example = std::chrono::microseconds(20);

class RealCoordinatorWork : public CoordinatorWork {
public:
    /// The trainer is shared with the clients' work: one thread, one device.
    RealCoordinatorWork(std::shared_ptr<Trainer> trainer, std::optional<Dataset> held_out)
        : trainer_(std::move(trainer)), held_out_(std::move(held_out)) {}
    /// A file that experiments may start from.
    void add_model(const std::string& name, Bytes file) { models_[name] = std::move(file); }

    void know(const SaveExperiment& experiment) override;
    void open_round(const OpenRound& job) override;
    std::optional<RoundOpened> opened(const OpenRound& job) override;
    void release(const ReleaseExperiment& job) override;
    Duration time_of(const Job& job) override;
    CoordinatorEvent make_model(const MakeModel& job, const SaveExperiment& experiment) override;
    UpdateAbsorbed absorb(const AbsorbUpdate& job, ByteView update) override;
    CoordinatorEvent finish_round(const FinishRound& job) override;
    CoordinatorEvent evaluate(const EvaluateModel& job) override;
    Result<Bytes> read_model(const Digest& model) override;
    void crash() override;

private:
    [[nodiscard]] Result<Bytes> first_model(const ExperimentSetup& setup) const;
    Status normalise_held_out(Experiment& experiment, const std::string& numbers);

    std::shared_ptr<Trainer> trainer_;
    std::optional<Dataset> held_out_;
    std::optional<Dataset> normalised_;  // the same, where a round of statistics has found how
    std::string normalised_by_;
    std::map<std::string, Bytes> models_;             // files by name
    std::map<ExperimentId, ExperimentSetup> setups_;  // from the store's text: survives a crash
    std::map<ExperimentId, RoundWork> rounds_;        // sums: lost in a crash
    std::map<Digest, Bytes> snapshots_;               // files: kept
    std::map<ExperimentId, std::map<Digest, Bytes>> segments_;  // files of open rounds: kept
};

class RealClientWork : public ClientWork {
public:
    /// The part is raw, as a file holds it, and so is what its manifest holds out; an assignment's data options are
    /// applied as the node would.
    RealClientWork(std::shared_ptr<Trainer> trainer, std::string name, Dataset part, std::optional<Dataset> test = {})
        : trainer_(std::move(trainer)), name_(std::move(name)), part_(std::move(part)), test_(std::move(test)) {}

    /// What its layers take from now on; without, an example takes training_per_example.
    void set_layer_times(LayerTable table) { table_ = std::move(table); }

    bool has_model(const Digest& model) override { return models_.contains(model) || segments_.contains(model); }
    void keep_model(const Digest& model, ByteView bytes) override { models_[model] = to_bytes(bytes); }
    Duration time_to_train(const Assign& assign) override;
    node::Trained train(const Assign& assign) override;
    Reply evaluate(const node::Evaluate& job) override;
    Result<std::unique_ptr<node::TurnWork>> begin_turn(const Assign& assign, Examples examples,
                                                       node::TurnHooks hooks) override;
    std::vector<CellAct> acts_of_turn(const Assign& assign) override;
    void keep_segment(const node::TurnOutput& output) override { segments_[output.held.digest] = output.file; }
    void let_go(const Digest& segment) override { segments_.erase(segment); }
    Result<Bytes> read_update(const Digest& update) override;
    void resolve(const node::ResolvePending& what) override;
    void forget(const node::ForgetExperiment& what) override;
    std::vector<HeldUpdate> held() override;
    void crash(Crash how) override;

    [[nodiscard]] DatasetDeclaration declaration() const;
    /// How often each label occurs, for a declaration that shares it.
    [[nodiscard]] std::vector<std::uint64_t> label_counts() const { return label_histogram(part_); }

private:
    Result<std::vector<CellAct>> acts_of(const Assign& assign) const;
    [[nodiscard]] node::StateSections base_of(const Assign& assign) const;
    Result<const DatasetFile*> examples_for(const Assign& assign);

    std::shared_ptr<Trainer> trainer_;
    std::string name_;
    std::optional<LayerTable> table_;
    Dataset part_;
    std::optional<Dataset> test_;
    std::shared_ptr<const DatasetFile> examples_;  // of part_ and test_, by options and seed
    std::pair<std::string, std::uint64_t> examples_key_;
    std::map<Digest, Bytes> models_;
    std::map<Digest, Bytes> segments_;                             // of turns: in memory
    std::map<std::string, std::shared_ptr<DatasetFile>> prepared_;  // by data options and seed: turns read them
    std::map<ExperimentId, node::StateSections> bases_;
    std::map<ExperimentId, node::TrainingOutput> pending_;
    std::optional<node::TrainingOutput> given_up_;  // the last one: its removal may not be flushed yet
};

}  // namespace causeway::simulation
