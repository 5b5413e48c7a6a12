// Batches prepared ahead on a thread of their own: gathered, labelled and augmented while the trainer computes.
//
// What a batch holds is a function of its place (order and augmentations are drawn by counting), so neither the thread
// nor how far it is ahead can change a bit. Where the trainer asks for another place than the next one, it gets it from
// its own maker, and nothing is prepared any more.
#pragma once

#include <optional>
#include <thread>
#include <vector>

#include "common/queue.h"
#include "data/batch_order.h"
#include "data/dataset.h"
#include "model/trainer.h"

namespace causeway {

/// How a round goes through the examples.
struct BatchPlan {
    std::size_t batch = 0;       // examples; 0: all of them
    std::size_t microbatch = 0;  // examples; 0: the batch's
    std::vector<AugmentStep> augment{};
};

/// One batch, or a part of it, as the trainer wants it.
struct PreparedBatch {
    BatchPlace place;
    std::vector<float> features;
    std::vector<std::uint32_t> labels;  // of a labelled set
    std::vector<float> targets;         // of a regression set
};

/// Makes batches of a round. The dataset outlives it. threads  bound to one
class BatchMaker {
public:
    BatchMaker(const Dataset& dataset, BatchPlan plan, const BatchKey& key)
        : dataset_(dataset), plan_(std::move(plan)), key_(key) {}

    /// shapes  features f32[rows, shape...]; labels and targets are resized to the rows where the set has them
    void make(const BatchPlace& place, std::span<float> features, std::vector<std::uint32_t>& labels,
              std::vector<float>& targets);
    /// The place behind this one: the next part, batch or epoch.
    [[nodiscard]] BatchPlace next(const BatchPlace& place) const;
    [[nodiscard]] const Dataset& dataset() const { return dataset_; }
    /// Whether a batch is worth a thread: bytes to move, several times as many to augment.
    [[nodiscard]] bool worth_a_thread() const;

private:
    [[nodiscard]] std::size_t batch_size() const;

    const Dataset& dataset_;
    BatchPlan plan_;
    BatchKey key_;
    std::optional<EpochBatches> order_;  // of key_.epoch
};

/// threads  take() bound to the trainer's
class Prefetcher {
public:
    /// Begins with this place.
    Prefetcher(BatchMaker maker, const BatchPlace& first);
    ~Prefetcher();
    Prefetcher(const Prefetcher&) = delete;
    Prefetcher& operator=(const Prefetcher&) = delete;

    /// The next batch, when it is the one of this place. Waits for it.
    [[nodiscard]] std::optional<PreparedBatch> take(const BatchPlace& place);
    /// Its memory serves again.
    void give_back(PreparedBatch batch);

private:
    void run(BatchPlace place);

    BatchMaker maker_;  // of the thread
    BoundedQueue<PreparedBatch> ready_;
    BoundedQueue<PreparedBatch> spare_;
    std::thread thread_;
};

}  // namespace causeway
