// What the loss says in the cases that no tolerance shows: ties, strange labels, evaluation, microbatches, in place.
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/device.h"

namespace causeway {
namespace {

Plan prepared_loss(std::string_view backend, const cw_op& op) {
    const auto device = Device::open(backend);
    REQUIRE(device.has_value());
    auto plan = device->prepare(op);
    REQUIRE(plan.has_value());
    return *std::move(plan);
}

struct Outcome {
    double loss = 0;
    std::int64_t correct = 0;
    std::vector<float> gradient;
};

Outcome loss_of(std::string_view backend, std::vector<float> logits, const std::vector<std::int64_t>& labels,
                double divisor) {
    const auto batch = static_cast<std::int64_t>(labels.size());
    const auto classes = static_cast<std::int64_t>(logits.size()) / batch;
    auto plan = prepared_loss(backend, ops::softmax_cross_entropy(batch, classes));
    Outcome outcome;
    REQUIRE(plan.run({logits, labels, outcome.loss, outcome.correct, logits}, {divisor}).has_value());  // in place
    outcome.gradient = logits;
    return outcome;
}

}  // namespace

TEST_CASE("of equal logits the first counts as the answer", "[kernels]") {
    for (const auto name : backend_names()) {
        CHECK(loss_of(name, {1, 2, 2}, {1}, 1).correct == 1);
        CHECK(loss_of(name, {1, 2, 2}, {2}, 1).correct == 0);
        CHECK(loss_of(name, {0, 0, 0}, {0}, 1).correct == 1);
    }
}

TEST_CASE("a row with a NaN is never correct, and its loss is a NaN", "[kernels]") {
    for (const auto name : backend_names()) {
        for (const std::int64_t label : {0, 1}) {
            const auto outcome = loss_of(name, {std::nanf(""), 3}, {label}, 1);
            CHECK(outcome.correct == 0);
            CHECK(std::isnan(outcome.loss));
        }
    }
}

TEST_CASE("a label outside the classes makes the loss and its row's gradient NaN, and no other row's", "[kernels]") {
    for (const auto name : backend_names()) {
        for (const std::int64_t label : {std::int64_t{-1}, std::int64_t{2}, std::int64_t{1} << 62}) {
            const auto outcome = loss_of(name, {1, 2, 3, 4}, {label, 1}, 2);
            CHECK(std::isnan(outcome.loss));
            CHECK(std::isnan(outcome.gradient[0]));
            CHECK(std::isfinite(outcome.gradient[2]));
            CHECK(outcome.correct == 1);
        }
    }
}

TEST_CASE("equal logits lose the logarithm of the number of classes, and each gradient row sums to zero", "[kernels]") {
    for (const auto name : backend_names()) {
        const auto outcome = loss_of(name, {5, 5, 5, 5}, {3}, 1);
        CHECK(outcome.loss == Approx(std::log(4.0)).epsilon(1e-12));
        CHECK(outcome.gradient == std::vector<float>{0.25f, 0.25f, 0.25f, -0.75f});
    }
}

TEST_CASE("huge logits neither overflow nor lose the loss", "[kernels]") {
    for (const auto name : backend_names()) {
        const auto outcome = loss_of(name, {1e30f, -1e30f, 1e30f}, {0}, 1);
        CHECK(outcome.loss == Approx(std::log(2.0)).epsilon(1e-12));
    }
}

TEST_CASE("microbatches with the whole batch's divisor give its gradient bits and its loss", "[kernels]") {
    const std::vector<float> logits{0.1f, 2, -1, 0.7f, 0.2f, 0.3f, -4, 4, 1};
    const std::vector<std::int64_t> labels{1, 0, 2};
    for (const auto name : backend_names()) {
        const auto whole = loss_of(name, logits, labels, 3);
        const auto first = loss_of(name, {logits.begin(), logits.begin() + 6}, {1, 0}, 3);
        const auto second = loss_of(name, {logits.begin() + 6, logits.end()}, {2}, 3);
        auto joined = first.gradient;
        joined.insert(joined.end(), second.gradient.begin(), second.gradient.end());
        CHECK(joined == whole.gradient);
        CHECK(first.loss + second.loss == Approx(whole.loss).epsilon(1e-12));
        CHECK(first.correct + second.correct == whole.correct);
    }
}

TEST_CASE("activations may write over what they read", "[kernels]") {
    const std::vector<float> x{-3, -0.5f, 0, 0.25f, 1, 2, 7, -8, 9, -0.75f, 11, 0.1f, -1, 0.3f, 5, -6, 17, -18, 0.5f};
    const std::vector<float> dy(x.size(), 0.5f);
    for (const auto name : backend_names()) {
        for (const auto& op : {ops::relu(), ops::gelu()}) {
            auto plan = prepared_loss(name, op);
            std::vector<float> apart(x.size()), over = x;
            REQUIRE(plan.run({x, apart}).has_value());
            REQUIRE(plan.run({over, over}).has_value());
            CHECK(over == apart);
        }
        for (const auto& op : {ops::relu_backward(), ops::gelu_backward()}) {
            auto plan = prepared_loss(name, op);
            std::vector<float> apart(x.size()), over = dy;
            REQUIRE(plan.run({x, dy, apart}).has_value());
            REQUIRE(plan.run({x, over, over}).has_value());
            CHECK(over == apart);
        }
    }
}

TEST_CASE("relu's output serves its backward pass as well as its input", "[kernels]") {
    for (const auto name : backend_names()) {
        auto forward = prepared_loss(name, ops::relu());
        auto backward = prepared_loss(name, ops::relu_backward());
        const std::vector<float> x{-1, 0, -0.0f, 1e-40f, 2, std::nanf("")}, dy{1, 2, 3, 4, 5, 6};
        std::vector<float> y(6), from_x(6), from_y(6);
        REQUIRE(forward.run({x, y}).has_value());
        REQUIRE(backward.run({x, dy, from_x}).has_value());
        REQUIRE(backward.run({y, dy, from_y}).has_value());
        CHECK(from_x == from_y);
        CHECK(from_x == std::vector<float>{0, 0, 0, 4, 5, 0});
    }
}

}  // namespace causeway
