// See prefetch.h.
#include "configs/prefetch.h"

#include <algorithm>

namespace causeway {
namespace {

constexpr std::size_t ahead =
    2;  // one that is taken next, one that is being made: a batch takes about as long as another

// Below this a batch is gathered in the time that two threads take to hand it over.
constexpr std::size_t values_worth_a_thread = 1 << 16;
constexpr std::size_t augmented_worth_a_thread = 1 << 13;

bool same_place(const BatchPlace& a, const BatchPlace& b) {
    return a.epoch == b.epoch && a.first == b.first && a.rows == b.rows;
}

}  // namespace

std::size_t BatchMaker::batch_size() const {
    return plan_.batch == 0 ? dataset_.size() : std::min(plan_.batch, dataset_.size());
}

bool BatchMaker::worth_a_thread() const {
    const std::size_t rows = plan_.microbatch > 0 ? std::min(plan_.microbatch, batch_size()) : batch_size();
    const bool drawn = draws_anything(plan_.augment);
    return rows * dataset_.example_size() >= (drawn ? augmented_worth_a_thread : values_worth_a_thread);
}

void BatchMaker::make(const BatchPlace& place, std::span<float> features, std::vector<std::uint32_t>& labels,
                      std::vector<float>& targets) {
    if (!order_ || key_.epoch != place.epoch) {
        key_.epoch = place.epoch;
        order_.emplace(dataset_.size(), plan_.batch, key_);
    }
    const std::size_t size = batch_size();
    const auto indices = (*order_)[place.first / size].subspan(place.first % size, place.rows);
    labels.resize(dataset_.labelled() ? place.rows : 0);
    gather(dataset_, indices, features, labels);
    targets.resize(dataset_.regression() ? place.rows : 0);
    for (std::size_t i = 0; i < targets.size(); ++i) {
        targets[i] = dataset_.targets[indices[i]];
    }
    augment(plan_.augment, dataset_.shape,
            {.seed = key_.seed,
             .round = key_.round,
             .node = key_.node,
             .step = place.epoch * batch_count(dataset_.size(), plan_.batch) + place.first / size,
             .first = place.first},
            features);
}

BatchPlace BatchMaker::next(const BatchPlace& place) const {
    const std::uint64_t size = batch_size();
    BatchPlace next{.epoch = place.epoch, .first = place.first + place.rows};
    if (next.first >= dataset_.size()) {
        next = {.epoch = place.epoch + 1};
    }
    next.batch = next.first / size;
    const std::uint64_t end = std::min<std::uint64_t>((next.batch + 1) * size, dataset_.size());
    next.rows = end - next.first;
    if (plan_.microbatch > 0) {
        next.rows = std::min<std::uint64_t>(next.rows, plan_.microbatch);
    }
    return next;
}

Prefetcher::Prefetcher(BatchMaker maker, const BatchPlace& first)
    : maker_(std::move(maker)), ready_(ahead), spare_(ahead + 1), thread_([this, first] { run(first); }) {}

Prefetcher::~Prefetcher() {
    ready_.close();
    thread_.join();
}

void Prefetcher::run(BatchPlace place) {
    const std::size_t width = maker_.dataset().example_size();
    for (;; place = maker_.next(place)) {
        PreparedBatch batch = spare_.try_pop().value_or(PreparedBatch{});
        batch.place = place;
        batch.features.resize(place.rows * width);
        maker_.make(place, batch.features, batch.labels, batch.targets);
        if (!ready_.push(std::move(batch))) {
            return;  // nobody wants more
        }
    }
}

std::optional<PreparedBatch> Prefetcher::take(const BatchPlace& place) {
    auto batch = ready_.pop();
    return batch && same_place(batch->place, place) ? std::move(batch) : std::nullopt;
}

void Prefetcher::give_back(PreparedBatch batch) {
    (void)spare_.try_push(batch);
}

}  // namespace causeway
