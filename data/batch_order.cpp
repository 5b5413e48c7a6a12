// The draw of an epoch and the copying of a batch.
//
// The key's epoch is the stream's step: one permutation per epoch, whatever the batch size, so that a batch size
// changes where the cuts are and not what comes first.
#include "data/batch_order.h"

#include <algorithm>
#include <numeric>

#include "common/assert.h"
#include "common/random.h"

namespace causeway {
namespace {

Indices epoch_order(std::size_t examples, std::size_t batch, const BatchKey& key) {
    if (batch < examples) {
        return RandomStream(RandomKey{.seed = key.seed,
                                      .purpose = "batch-order",
                                      .round = key.round,
                                      .node = key.node,
                                      .step = key.epoch})
            .permutation(examples);
    }
    Indices order(examples);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    return order;
}

std::size_t actual_batch(std::size_t examples, std::size_t batch) {
    return batch == 0 ? examples : std::min(batch, examples);
}

}  // namespace

std::size_t batch_count(std::size_t examples, std::size_t batch) {
    return examples == 0 ? 0 : (examples - 1) / actual_batch(examples, batch) + 1;
}

EpochBatches::EpochBatches(std::size_t examples, std::size_t batch, const BatchKey& key)
    : order_(epoch_order(examples, actual_batch(examples, batch), key)), batch_(actual_batch(examples, batch)) {}

std::size_t EpochBatches::size() const {
    return batch_count(order_.size(), batch_);
}

std::span<const std::uint32_t> EpochBatches::operator[](std::size_t index) const {
    ASSERT(index < size());
    const auto begin = index * batch_;
    return std::span(order_).subspan(begin, std::min(batch_, order_.size() - begin));
}

void gather(const Dataset& dataset, std::span<const std::uint32_t> indices, std::span<float> features,
            std::span<std::uint32_t> labels) {
    const std::size_t width = dataset.example_size();
    ASSERT(features.size() == indices.size() * width);
    ASSERT(labels.empty() || (labels.size() == indices.size() && dataset.labelled()));
    for (std::size_t i = 0; i < indices.size(); ++i) {
        ASSERT(indices[i] < dataset.size());
        std::copy_n(dataset.features.begin() + static_cast<std::ptrdiff_t>(indices[i] * width), width,
                    features.begin() + static_cast<std::ptrdiff_t>(i * width));
        if (!labels.empty()) {
            labels[i] = dataset.labels[indices[i]];
        }
    }
}

}  // namespace causeway
