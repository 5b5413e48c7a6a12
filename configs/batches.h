// A dataset as the trainer asks for it: in a node's own shuffled order to train, in its stored order to evaluate.
//
// model/ knows no datasets and data/ no trainer; configs/ may know both, so the bridge is here, where coordinator and
// client both reach it. Thread: the trainer's.
#pragma once

#include <functional>
#include <optional>

#include "configs/prefetch.h"
#include "model/trainer.h"

namespace causeway {

struct TrainingHooks {
    std::function<void(std::uint64_t step, std::uint64_t steps, double loss)> progress;  // may be empty
    std::function<bool()> stop_requested;                                                // may be empty
    std::function<bool()> wants_snapshot;                                                // may be empty
    std::function<void(RunSnapshot)> keep;                                               // beside wants_snapshot
};

/// Batches of a round in the order of data/batch_order.h, prepared ahead where that is worth a thread. The dataset must
/// outlive it.
class TrainingBatches : public TrainerIo {
public:
    /// key  of the round; its epoch is filled in from what the trainer asks
    TrainingBatches(const Dataset& dataset, BatchPlan plan, const BatchKey& key, TrainingHooks hooks = {});
    TrainingBatches(const Dataset& dataset, std::size_t batch, const BatchKey& key, TrainingHooks hooks = {})
        : TrainingBatches(dataset, BatchPlan{.batch = batch}, key, std::move(hooks)) {}

    [[nodiscard]] std::uint64_t examples() const override { return dataset_.size(); }
    Status load(const BatchPlace& place, std::span<float> features, std::span<std::int64_t> labels) override;
    Status load_targets(const BatchPlace& place, std::span<float> features, std::span<float> targets) override;
    void progress(std::uint64_t step, std::uint64_t steps, double loss) override;
    [[nodiscard]] bool stop_requested() const override;
    [[nodiscard]] bool wants_snapshot() override { return hooks_.wants_snapshot && hooks_.wants_snapshot(); }
    void keep(RunSnapshot snapshot) override { hooks_.keep(std::move(snapshot)); }

private:
    void prepare(const BatchPlace& place, std::span<float> features);

    const Dataset& dataset_;
    BatchMaker maker_;
    TrainingHooks hooks_;
    enum class Ahead { untried, prefetching, given_up } ahead_ = Ahead::untried;
    std::optional<Prefetcher> prefetcher_;
    std::vector<std::uint32_t> labels_;  // of the batch that was prepared last
    std::vector<float> targets_;
};

/// Examples as they are stored, for Trainer::evaluate and predict (labels that the dataset lacks are 0): all of them,
/// or those of a slice, whose first is then place 0. The dataset must outlive it.
class EvaluationBatches : public TrainerIo {
public:
    explicit EvaluationBatches(const Dataset& dataset) : EvaluationBatches(dataset, 0, dataset.size()) {}
    EvaluationBatches(const Dataset& dataset, std::uint64_t first, std::uint64_t count)
        : dataset_(dataset), first_(first), count_(count) {}

    [[nodiscard]] std::uint64_t examples() const override { return count_; }
    Status load(const BatchPlace& place, std::span<float> features, std::span<std::int64_t> labels) override;
    Status load_targets(const BatchPlace& place, std::span<float> features, std::span<float> targets) override;

private:
    const Dataset& dataset_;
    std::uint64_t first_;
    std::uint64_t count_;
    std::vector<std::uint32_t> labels_;
};

/// Gives the examples the shape of a model's input, where they have as many values.
///
/// errors  invalid `shape_mismatch`, with what to do about a column that is too much; `no_examples`
[[nodiscard]] Status fit_to_input(Dataset& dataset, const Chain& chain);

/// Whether this dataset can train or evaluate this chain: shape of an example, labels below the outputs.
///
/// errors  invalid `shape_mismatch`, `no_labels`, `no_targets`, `label_out_of_range`, `no_examples`
[[nodiscard]] Status check_dataset_fits(const Dataset& dataset, const Chain& chain);

}  // namespace causeway
