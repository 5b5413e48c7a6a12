// The optimizers against numbers worked out by hand from PyTorch's definitions, and the paths that no tolerance shows.
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/device.h"

namespace causeway {
namespace {

Plan prepared_optimizer(const cw_op& op) {
    const auto device = Device::open("cpu");
    REQUIRE(device.has_value());
    auto plan = device->prepare(op);
    REQUIRE(plan.has_value());
    return *std::move(plan);
}

}  // namespace

TEST_CASE("the first step of SGD takes the gradient as its momentum, whatever the dampening", "[kernels]") {
    auto step = prepared_optimizer(ops::sgd(ops::Momentum::plain));
    std::vector<float> theta{1}, m{123};
    REQUIRE(step.run({theta, std::vector<float>{2}, m}, {0.5, 0.9, 0.5, 0, 1}).has_value());
    CHECK(m[0] == 2);
    CHECK(theta[0] == 0);
    REQUIRE(step.run({theta, std::vector<float>{2}, m}, {0.5, 0.5, 0.5, 0, 2}).has_value());
    CHECK(m[0] == 2);  // 0.5 * 2 + (1 - 0.5) * 2
    CHECK(theta[0] == -1);
}

TEST_CASE("Nesterov looks one momentum ahead", "[kernels]") {
    auto step = prepared_optimizer(ops::sgd(ops::Momentum::nesterov));
    std::vector<float> theta{0}, m{0};
    REQUIRE(step.run({theta, std::vector<float>{1}, m}, {1, 0.5, 0, 0, 1}).has_value());
    CHECK(theta[0] == -1.5f);  // g + 0.5 * m, m = g
}

TEST_CASE("weight decay of SGD enters the gradient", "[kernels]") {
    auto step = prepared_optimizer(ops::sgd(ops::Momentum::absent));
    std::vector<float> theta{4};
    REQUIRE(step.run({theta, std::vector<float>{1}}, {0.5, 0, 0, 0.25, 1}).has_value());
    CHECK(theta[0] == 3);  // 4 - 0.5 * (1 + 0.25 * 4)
}

TEST_CASE("the first step of AdamW moves by the rate, against the gradient's sign, after the decay", "[kernels]") {
    auto step = prepared_optimizer(ops::adamw());
    std::vector<float> theta{1, 1}, m{0, 0}, v{0, 0};
    REQUIRE(step.run({theta, std::vector<float>{3, -0.01f}, m, v}, {0.01, 0.9, 0.999, 1e-12, 0.1, 1}).has_value());
    CHECK(theta[0] == Approx(0.999 - 0.01).epsilon(1e-6));
    CHECK(theta[1] == Approx(0.999 + 0.01).epsilon(1e-6));
    CHECK(m[0] == Approx(0.3));
    CHECK(v[0] == Approx(0.009));
}

}  // namespace causeway
