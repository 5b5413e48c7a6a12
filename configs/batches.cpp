// Positions of an epoch's order become rows of features and labels. One gather per batch, no other copy.
#include "configs/batches.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "common/assert.h"

namespace causeway {
namespace {

void widen(const std::vector<std::uint32_t>& from, std::span<std::int64_t> to) {
    std::ranges::copy(from, to.begin());
}

}  // namespace

TrainingBatches::TrainingBatches(const Dataset& dataset, BatchPlan plan, const BatchKey& key, TrainingHooks hooks)
    : dataset_(dataset), maker_(dataset, std::move(plan), key), hooks_(std::move(hooks)) {}

/// The thread begins with the first batch that is asked for: a run that goes on does so in the middle.
void TrainingBatches::prepare(const BatchPlace& place, std::span<float> features) {
    if (ahead_ == Ahead::untried) {
        ahead_ = maker_.worth_a_thread() ? Ahead::prefetching : Ahead::given_up;
        if (ahead_ == Ahead::prefetching) {
            prefetcher_.emplace(maker_, place);
        }
    }
    if (prefetcher_) {
        if (auto batch = prefetcher_->take(place)) {
            std::ranges::copy(batch->features, features.begin());
            labels_ = batch->labels;
            targets_ = batch->targets;
            return prefetcher_->give_back(*std::move(batch));
        }
        prefetcher_.reset();  // another order than the plan's
        ahead_ = Ahead::given_up;
    }
    maker_.make(place, features, labels_, targets_);
}

Status TrainingBatches::load(const BatchPlace& place, std::span<float> features, std::span<std::int64_t> labels) {
    prepare(place, features);
    widen(labels_, labels);
    return {};
}

/// Only a regression set has targets; the labels of any other serve as numbers.
Status TrainingBatches::load_targets(const BatchPlace& place, std::span<float> features, std::span<float> targets) {
    if (!dataset_.regression()) {
        return TrainerIo::load_targets(place, features, targets);
    }
    prepare(place, features);
    std::ranges::copy(targets_, targets.begin());
    return {};
}

void TrainingBatches::progress(std::uint64_t step, std::uint64_t steps, double loss) {
    if (hooks_.progress) {
        hooks_.progress(step, steps, loss);
    }
}

bool TrainingBatches::stop_requested() const {
    return hooks_.stop_requested && hooks_.stop_requested();
}

Status EvaluationBatches::load(const BatchPlace& place, std::span<float> features, std::span<std::int64_t> labels) {
    std::vector<std::uint32_t> indices(place.rows);
    std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(first_ + place.first));
    labels_.assign(place.rows, 0);
    gather(dataset_, indices, features, dataset_.labelled() ? std::span(labels_) : std::span<std::uint32_t>());
    widen(labels_, labels);
    return {};
}

Status EvaluationBatches::load_targets(const BatchPlace& place, std::span<float> features, std::span<float> targets) {
    if (!dataset_.regression()) {
        return TrainerIo::load_targets(place, features, targets);
    }
    const auto begin = static_cast<std::ptrdiff_t>(first_ + place.first);
    const auto rows = static_cast<std::ptrdiff_t>(place.rows);
    const auto width = static_cast<std::ptrdiff_t>(dataset_.example_size());
    std::copy_n(dataset_.features.begin() + begin * width, rows * width, features.begin());
    std::copy_n(dataset_.targets.begin() + begin, rows, targets.begin());
    return {};
}

Status fit_to_input(Dataset& dataset, const Chain& chain) {
    const auto wanted = element_count(chain.input());
    const auto found = static_cast<std::int64_t>(dataset.example_size());
    if (dataset.size() == 0) {
        return fail(ErrorKind::invalid, "no_examples", fmt::format("dataset \"{}\" has no examples", dataset.name));
    }
    if (found != wanted) {
        const bool label_counts = found == wanted + 1 && !dataset.labelled() && !dataset.regression();
        return fail(ErrorKind::invalid, "shape_mismatch",
                    fmt::format("dataset \"{}\" has {} values an example, the model takes {} ({}){}", dataset.name,
                                found, wanted, to_string(chain.input()),
                                label_counts ? ": one column may be the label; name it with --label last" : ""));
    }
    return reshape(dataset, chain.input());
}

namespace {

/// Each example has one number, or one label that serves as it.
Status require_targets(const Dataset& dataset, const Chain& chain) {
    const bool has_one = dataset.labelled() || dataset.regression();
    if (!has_one || chain.classes() != 1) {
        return fail(ErrorKind::invalid, "no_targets",
                    fmt::format("the model's loss wants {} numbers an example, dataset \"{}\" has {}", chain.classes(),
                                dataset.name, has_one ? "one" : "none: name the label column"));
    }
    return {};
}

}  // namespace

Status check_dataset_fits(const Dataset& dataset, const Chain& chain) {
    if (dataset.size() == 0) {
        return fail(ErrorKind::invalid, "no_examples", fmt::format("dataset \"{}\" has no examples", dataset.name));
    }
    if (dataset.shape != chain.input()) {
        return fail(ErrorKind::invalid, "shape_mismatch",
                    fmt::format("dataset \"{}\" has examples of shape {}, the model takes {}; set data.shape",
                                dataset.name, to_string(dataset.shape), to_string(chain.input())));
    }
    if (chain.loss().numeric()) {
        return require_targets(dataset, chain);
    }
    return require_labels_below(dataset, static_cast<std::uint32_t>(chain.classes()));
}

}  // namespace causeway
