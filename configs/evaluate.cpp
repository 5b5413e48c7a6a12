// From scores to figures. One yes-or-no output is a choice between two classes whose first score is 0: its logistic
// loss, accuracy, F1 and AUC are then those of the two.
#include "configs/evaluate.h"

#include <array>
#include <cmath>
#include <limits>

namespace causeway {
namespace {

constexpr double no_loss = std::numeric_limits<double>::quiet_NaN();

std::size_t class_count(const Chain& chain) {
    return chain.loss().numeric() ? 2 : static_cast<std::size_t>(chain.classes());
}

}  // namespace

FiguresSum::FiguresSum(const Chain& chain, const Dataset& dataset)
    : chain_(chain), dataset_(dataset), classes_(class_count(chain)) {}

Status FiguresSum::add_next(Trainer& trainer, const ModelState& state, std::uint64_t count) {
    const auto first = next_;
    const auto rows = std::min<std::uint64_t>(count, dataset_.size() - first);
    next_ += rows;
    EvaluationBatches batches(dataset_, first, rows);
    const auto done = trainer.predict(
        chain_, state, batches,
        [&](const BatchPlace& place, std::span<const float> scores, std::span<const std::int64_t> labels) -> Status {
            add(first + place.first, scores, labels);
            return {};
        });
    if (!done && done.error().code == "not_finite") {
        diverged_ = true;
        next_ = dataset_.size();
        return {};
    }
    return done;
}

/// Targets are read where they lie: what the trainer loaded of them is on its device.
void FiguresSum::add(std::uint64_t first, std::span<const float> scores, std::span<const std::int64_t> labels) {
    if (!chain_.loss().numeric()) {
        return classes_.add(scores, labels);
    }
    for (std::size_t row = 0; row < scores.size(); ++row) {
        const auto target = [&](std::uint64_t i) {
            return dataset_.regression() ? dataset_.targets[i] : static_cast<float>(dataset_.labels[i]);
        }(first + row);
        if (!chain_.loss().counts_correct()) {
            const double error = static_cast<double>(scores[row]) - static_cast<double>(target);
            squares_ += error * error;
            distances_ += std::abs(error);
        } else {
            const std::array<float, 2> pair{0, scores[row]};
            const std::array<std::int64_t, 1> label{target > 0.5F ? 1 : 0};
            classes_.add(pair, label);
        }
    }
}

Figures FiguresSum::finish() const {
    Figures figures{dataset_.size(), {}};
    const auto count = static_cast<double>(dataset_.size());
    if (!chain_.loss().counts_correct()) {
        const double mean = diverged_ ? no_loss : squares_ / count;
        figures.values = {{"loss", mean}, {"mae", diverged_ ? no_loss : distances_ / count}, {"rmse", std::sqrt(mean)}};
        return figures;
    }
    if (diverged_) {
        figures.values = {{"loss", no_loss}, {"accuracy", 0}, {"macro_f1", 0}};
        return figures;
    }
    const auto metrics = classes_.finish();
    figures.values = {{"loss", metrics.loss}, {"accuracy", metrics.accuracy}, {"macro_f1", metrics.macro_f1}};
    if (metrics.auc) {
        figures.values["auc"] = *metrics.auc;
    }
    return figures;
}

Result<Figures> evaluate_dataset(Trainer& trainer, const Chain& chain, const ModelState& state,
                                 const Dataset& dataset) {
    TRY(check_dataset_fits(dataset, chain));
    FiguresSum sum(chain, dataset);
    TRY(sum.add_next(trainer, state, dataset.size()));
    return sum.finish();
}

}  // namespace causeway
