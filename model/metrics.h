// How good a classifier is, from its scores: loss, accuracy, F1 of each class and their mean, area under the ROC curve.
//
// Scores come batch by batch, so what is kept is three counts a class and, only for two classes, one number an
// example. All sums are in double, in the order of the examples: equal scores give equal figures. Pure, any thread.
// Sources: Powers, "Evaluation: from precision, recall and F-measure to ROC" (2011); Hanley and McNeil (1982) for the
// area as the Mann-Whitney statistic.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace causeway {

/// The first of the largest scores: the class for which the trainer's accuracy counts. shapes   [C], C >= 1
[[nodiscard]] std::uint32_t predicted_class(std::span<const float> scores);

/// Softmax, in double, rounded once. Finite scores give values that add up to 1 but for that rounding.
///
/// shapes   scores and probabilities f32[C]
void class_probabilities(std::span<const float> scores, std::span<float> probabilities);

/// One class against all others. A ratio without a denominator is 0, as scikit-learn has it.
struct ClassCounts {
    std::uint64_t examples = 0;   // that have this label
    std::uint64_t predicted = 0;  // that the model puts here
    std::uint64_t correct = 0;    // both

    [[nodiscard]] double precision() const;  // correct / predicted
    [[nodiscard]] double recall() const;     // correct / examples
    [[nodiscard]] double f1() const;         // harmonic mean of the two
};

/// Of a whole set of examples. Not wire's Metrics, which a node tells about its training.
struct ClassMetrics {
    std::uint64_t examples = 0;
    double loss = 0;      // mean cross-entropy, natural logarithm
    double accuracy = 0;  // share of examples whose predicted class is their label
    double macro_f1 = 0;  // mean F1 of the classes that have examples or predictions
    /// The chance that an example of class 1 has a higher score for class 1 than one of class 0, equal ones counting
    /// half. Empty unless there are two classes, both with examples.
    std::optional<double> auc;
    std::vector<ClassCounts> classes;  // [C]
};

/// Adds batches up.
class MetricsSum {
public:
    explicit MetricsSum(std::size_t classes) : counts_(classes) {}

    /// shapes   scores f32[B, C], labels i64[B], each in [0, C)
    void add(std::span<const float> scores, std::span<const std::int64_t> labels);
    /// cost     with two classes one sort of the examples
    [[nodiscard]] ClassMetrics finish() const;

private:
    /// Two classes: how much higher class 1's score is, which orders examples as its probability does.
    struct Ranked {
        double margin = 0;
        bool positive = false;
    };

    [[nodiscard]] std::optional<double> area() const;

    std::vector<ClassCounts> counts_;
    std::vector<Ranked> ranked_;
    double loss_ = 0;
    std::uint64_t examples_ = 0;
};

}  // namespace causeway
