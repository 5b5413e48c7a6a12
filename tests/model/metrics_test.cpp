// ClassMetrics against values worked out by hand, and laws that hold for any scores.
#include "model/metrics.h"

#include <cmath>

#include <catch2/catch.hpp>

#include "common/random.h"
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

ClassMetrics metrics_of(std::size_t classes, const std::vector<float>& scores,
                        const std::vector<std::int64_t>& labels) {
    MetricsSum sum(classes);
    sum.add(scores, labels);
    return sum.finish();
}

/// A score of 1 for the predicted class and 0 elsewhere.
std::vector<float> one_hot(std::size_t classes, const std::vector<std::size_t>& predicted) {
    std::vector<float> scores(classes * predicted.size());
    for (std::size_t row = 0; row < predicted.size(); ++row) {
        scores[row * classes + predicted[row]] = 1;
    }
    return scores;
}

TEST_CASE("precision, recall, F1 and their mean are those counted by hand", "[unit]") {
    // label      0 0 0 1 1 2     class 0: 2 of 3 found, 2 of 3 predictions right  -> F1 2/3
    // predicted  0 0 1 1 0 2     class 1: 1 of 2, 1 of 2 -> 1/2;  class 2: 1 of 1, 1 of 1 -> 1
    const auto metrics = metrics_of(3, one_hot(3, {0, 0, 1, 1, 0, 2}), {0, 0, 0, 1, 1, 2});
    CHECK(metrics.examples == 6);
    CHECK(metrics.accuracy == Approx(4.0 / 6));
    CHECK(metrics.classes[0].precision() == Approx(2.0 / 3));
    CHECK(metrics.classes[0].recall() == Approx(2.0 / 3));
    CHECK(metrics.classes[1].f1() == Approx(0.5));
    CHECK(metrics.macro_f1 == Approx((2.0 / 3 + 0.5 + 1) / 3));
    CHECK_FALSE(metrics.auc);
    // A row's loss is log(e + 2) - 1 when right and log(e + 2) when wrong; 4 of 6 are right.
    CHECK(metrics.loss == Approx(std::log(std::exp(1.0) + 2) - 4.0 / 6));
}

TEST_CASE("a class that is never predicted has precision and F1 0; one that does not occur is left out of the mean",
          "[unit]") {
    const auto metrics = metrics_of(4, one_hot(4, {0, 0}), {0, 1});
    CHECK(metrics.classes[1].precision() == 0);
    CHECK(metrics.classes[1].f1() == 0);
    CHECK(metrics.macro_f1 == Approx((2.0 / 3 + 0) / 2));  // classes 2 and 3 neither occur nor are predicted
}

TEST_CASE("the area under the curve counts pairs, equal margins half", "[unit]") {
    // Margins of class 1: positives 0.8, 0.4, 0.4; negatives 0.4, 0.1. Pairs won: 2 + 1.5 + 1.5 of 6.
    const std::vector<float> scores{0, 0.8F, 0, 0.4F, 0, 0.4F, 0, 0.4F, 0, 0.1F};
    const auto metrics = metrics_of(2, scores, {1, 1, 1, 0, 0});
    REQUIRE(metrics.auc);
    CHECK(*metrics.auc == Approx(5.0 / 6));
}

TEST_CASE("the area is 1 for a perfect order, 0 for the reverse, a half without any, and absent for one class",
          "[unit]") {
    CHECK(*metrics_of(2, {0, -1, 0, 1}, {0, 1}).auc == 1);
    CHECK(*metrics_of(2, {0, 1, 0, -1}, {0, 1}).auc == 0);
    CHECK(*metrics_of(2, {3, 3, 3, 3}, {0, 1}).auc == 0.5);
    CHECK_FALSE(metrics_of(2, {0, 1, 0, -1}, {1, 1}).auc);
}

TEST_CASE("probabilities are the softmax, also where exp of a score overflows", "[unit]") {
    std::vector<float> probabilities(2);
    class_probabilities(std::vector<float>{1000.0F, 1000.0F + std::log(3.0F)}, probabilities);
    CHECK(probabilities[0] == Approx(0.25).epsilon(1e-4));  // log 3 beside 1000 keeps four digits
    CHECK(probabilities[1] == Approx(0.75).epsilon(1e-4));
    class_probabilities(std::vector<float>{0.0F, std::log(3.0F)}, probabilities);
    CHECK(probabilities[0] == Approx(0.25));
    CHECK(predicted_class(std::vector<float>{1, 2, 2}) == 1);
}

TEST_CASE("the figures do not depend on how the examples come in batches", "[property]") {
    RandomStream random({.seed = 11, .purpose = "metrics"});
    for (const std::size_t classes : {2U, 5U}) {
        std::vector<float> scores(100 * classes);
        std::vector<std::int64_t> labels(100);
        for (float& score : scores) {
            score = static_cast<float>(random.normal());
        }
        for (auto& label : labels) {
            label = static_cast<std::int64_t>(random.below(classes));
        }
        const auto whole = metrics_of(classes, scores, labels);
        MetricsSum parts(classes);
        for (std::size_t first = 0; first < 100; first += 25) {
            parts.add(std::span(scores).subspan(first * classes, 25 * classes), std::span(labels).subspan(first, 25));
        }
        const auto added = parts.finish();
        CHECK(added.loss == whole.loss);
        CHECK(added.macro_f1 == whole.macro_f1);
        CHECK(added.auc == whole.auc);
        CHECK(whole.auc.has_value() == (classes == 2));
    }
}

TEST_CASE("predicted scores give the loss and accuracy that the trainer's evaluation gives, in any batches", "[unit]") {
    const Chain chain = make_chain({"flatten", "dense 16", "relu", "dense 4"}, {6});
    const auto state = initial_model(chain, 3);
    auto io = clusters(103, 6, 4, 9);
    auto trainer = open_trainer("cpu");
    const auto wanted = must(trainer.evaluate(chain, state, io));
    for (const std::uint32_t batch : {0U, 1U, 32U, 256U}) {
        MetricsSum sum(4);
        std::uint64_t next = 0;
        must(trainer.predict(
            chain, state, io,
            [&](const BatchPlace& place, std::span<const float> scores,
                std::span<const std::int64_t> labels) -> Status {
                CHECK(place.first == next);
                next += place.rows;
                sum.add(scores, labels);
                return {};
            },
            batch));
        const auto metrics = sum.finish();
        CHECK(metrics.examples == 103);
        CHECK(metrics.loss == Approx(wanted.loss).epsilon(1e-5));
        CHECK(metrics.accuracy == Approx(wanted.accuracy));
    }
}

TEST_CASE("a model that gives NaN or infinity is refused with the example's number", "[unit]") {
    const Chain chain = make_chain({"dense 2"}, {1});
    auto state = initial_model(chain, 3);
    MemoryIo io;
    io.features = {0, 1, 1e38F};
    io.labels = {0, 0, 0};
    state.trainable.values.assign(state.trainable.values.size(), 1e10F);
    auto trainer = open_trainer("cpu");
    const auto status = trainer.predict(chain, state, io, [](auto, auto, auto) -> Status { return {}; });
    REQUIRE_FALSE(status);
    CHECK(status.error().code == "not_finite");
    CHECK(status.error().message.find("example 3") != std::string::npos);
}

}  // namespace
}  // namespace causeway
