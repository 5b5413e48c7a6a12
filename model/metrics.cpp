// Counts, one pass over the scores; the area under the curve from ranks.
#include "model/metrics.h"

#include <algorithm>
#include <cmath>

#include "common/assert.h"

namespace causeway {
namespace {

double ratio(double part, double whole) {
    return whole == 0 ? 0 : part / whole;
}

/// log(sum(exp(scores))), shifted by the largest so that nothing overflows.
double log_sum(std::span<const float> scores) {
    const double largest = *std::ranges::max_element(scores);
    double sum = 0;
    for (const float score : scores) {
        sum += std::exp(score - largest);
    }
    return largest + std::log(sum);
}

}  // namespace

std::uint32_t predicted_class(std::span<const float> scores) {
    ASSERT(!scores.empty());
    return static_cast<std::uint32_t>(std::ranges::max_element(scores) - scores.begin());
}

void class_probabilities(std::span<const float> scores, std::span<float> probabilities) {
    ASSERT(scores.size() == probabilities.size());
    const double shift = log_sum(scores);
    std::ranges::transform(scores, probabilities.begin(),
                           [&](float score) { return static_cast<float>(std::exp(score - shift)); });
}

double ClassCounts::precision() const {
    return ratio(static_cast<double>(correct), static_cast<double>(predicted));
}

double ClassCounts::recall() const {
    return ratio(static_cast<double>(correct), static_cast<double>(examples));
}

/// 2 P R / (P + R) without the two divisions.
double ClassCounts::f1() const {
    return ratio(2 * static_cast<double>(correct), static_cast<double>(examples + predicted));
}

void MetricsSum::add(std::span<const float> scores, std::span<const std::int64_t> labels) {
    const std::size_t classes = counts_.size();
    ASSERT(scores.size() == labels.size() * classes);
    for (std::size_t row = 0; row < labels.size(); ++row) {
        const auto of_row = scores.subspan(row * classes, classes);
        const auto label = static_cast<std::size_t>(labels[row]);
        ASSERT(label < classes);
        const auto predicted = predicted_class(of_row);
        ++counts_[label].examples;
        ++counts_[predicted].predicted;
        counts_[label].correct += predicted == label ? 1 : 0;
        loss_ += log_sum(of_row) - static_cast<double>(of_row[label]);
        if (classes == 2) {
            ranked_.push_back({static_cast<double>(of_row[1]) - static_cast<double>(of_row[0]), label == 1});
        }
    }
    examples_ += labels.size();
}

/// Each example of class 1 beats the examples of class 0 below it, and half of those level with it.
std::optional<double> MetricsSum::area() const {
    if (counts_.size() != 2 || counts_[0].examples == 0 || counts_[1].examples == 0) {
        return std::nullopt;
    }
    auto ranked = ranked_;
    std::ranges::sort(ranked, {}, &Ranked::margin);
    double wins = 0;
    double below = 0;  // examples of class 0 with a smaller margin
    for (auto begin = ranked.begin(); begin != ranked.end();) {
        const auto end = std::find_if(begin, ranked.end(), [&](const auto& r) { return r.margin != begin->margin; });
        const auto positives = static_cast<double>(std::count_if(begin, end, [](const auto& r) { return r.positive; }));
        const auto negatives = static_cast<double>(end - begin) - positives;
        wins += positives * (below + negatives / 2);
        below += negatives;
        begin = end;
    }
    return wins / (static_cast<double>(counts_[0].examples) * static_cast<double>(counts_[1].examples));
}

ClassMetrics MetricsSum::finish() const {
    ClassMetrics metrics{.examples = examples_, .auc = area(), .classes = counts_};
    std::uint64_t correct = 0;
    double seen = 0;
    for (const ClassCounts& counts : counts_) {
        correct += counts.correct;
        metrics.macro_f1 += counts.f1();
        seen += counts.examples + counts.predicted > 0 ? 1 : 0;
    }
    metrics.macro_f1 = ratio(metrics.macro_f1, seen);
    metrics.loss = ratio(loss_, static_cast<double>(examples_));
    metrics.accuracy = ratio(static_cast<double>(correct), static_cast<double>(examples_));
    return metrics;
}

}  // namespace causeway
