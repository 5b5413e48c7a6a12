// Distance correlation against a direct double loop and values that are known; noise against its statement.
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "common/random.h"
#include "split/leakage.h"
#include "split/smash_noise.h"

namespace causeway {
namespace {

std::vector<float> normals(std::size_t count, std::uint64_t seed) {
    RandomStream random({.seed = seed, .purpose = "test-leakage"});
    std::vector<float> values(count);
    for (auto& value : values) {
        value = static_cast<float>(random.normal());
    }
    return values;
}

/// The definition, term by term: means are formed anew for every pair.
double direct(const Sample& x, const Sample& y) {
    const std::size_t n = x.size();
    const auto distance = [](const Sample& s, std::size_t j, std::size_t k) {
        double sum = 0;
        for (std::size_t i = 0; i < s.width; ++i) {
            sum += std::pow(double{s.values[j * s.width + i]} - double{s.values[k * s.width + i]}, 2);
        }
        return std::sqrt(sum);
    };
    const auto centred = [&](const Sample& s, std::size_t j, std::size_t k) {
        double row = 0, column = 0, all = 0;
        for (std::size_t i = 0; i < n; ++i) {
            row += distance(s, j, i) / static_cast<double>(n);
            column += distance(s, i, k) / static_cast<double>(n);
            for (std::size_t l = 0; l < n; ++l) {
                all += distance(s, i, l) / static_cast<double>(n * n);
            }
        }
        return distance(s, j, k) - row - column + all;
    };
    double xy = 0, xx = 0, yy = 0;
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < n; ++k) {
            const double a = centred(x, j, k), b = centred(y, j, k);
            xy += a * b;
            xx += a * a;
            yy += b * b;
        }
    }
    return std::sqrt(xy / std::sqrt(xx * yy));
}

}  // namespace

TEST_CASE("the distance correlation is that of its definition", "[paper][leakage]") {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const auto x = normals(14 * 3, seed);
        auto y = normals(14 * 2, seed + 100);
        for (std::size_t i = 0; i < 14; ++i) {
            y[2 * i] += x[3 * i] * x[3 * i];  // dependent, not linearly
        }
        CAPTURE(seed);
        CHECK(distance_correlation({x, 3}, {y, 2}) == Approx(direct({x, 3}, {y, 2})).epsilon(1e-9));
    }
}

TEST_CASE("a sample and itself give 1, also turned, scaled and moved; independent ones little", "[paper][leakage]") {
    const auto x = normals(300 * 2, 5);
    CHECK(distance_correlation({x, 2}, {x, 2}) == Approx(1));
    auto moved = x;
    for (std::size_t i = 0; i < 300; ++i) {
        moved[2 * i] = 3 - 2 * x[2 * i + 1];
        moved[2 * i + 1] = 2 * x[2 * i];
    }
    CHECK(distance_correlation({x, 2}, {moved, 2}) == Approx(1).epsilon(1e-6));
    const auto other = normals(300, 6);
    CHECK(distance_correlation({x, 2}, {other, 1}) < 0.2);
    auto square = normals(300, 7);
    const auto root = square;
    for (auto& value : square) {
        value *= value;
    }
    // Uncorrelated, but not independent: the linear correlation of a normal and its square is 0.
    CHECK(distance_correlation({root, 1}, {square, 1}) > 0.4);
    CHECK(shuffled_correlation({root, 1}, {square, 1}, 3) < 0.2);
}

TEST_CASE("what has no spread tells nothing", "[unit][leakage]") {
    const std::vector<float> same(10, 2.0F);
    const auto x = normals(10, 1);
    CHECK(distance_correlation({x, 1}, {same, 1}) == 0);
    CHECK(distance_correlation({std::span(x).first(1), 1}, {std::span(same).first(1), 1}) == 0);
    CHECK(distance_correlation({{}, 1}, {{}, 1}) == 0);
}

TEST_CASE("noise has the scale that it says, repeats for one step and differs from step to step", "[unit][leakage]") {
    const SmashNoise noise{.scale = 0.5, .seed = 3, .round = 2, .node = 77};
    std::vector<float> values(64 * 100, 1.0F), again = values, later = values, other = values;
    add_smash_noise(values, 64, noise, 9);
    add_smash_noise(again, 64, noise, 9);
    add_smash_noise(later, 64, noise, 10);
    add_smash_noise(other, 64, {.scale = 0.5, .seed = 3, .round = 2, .node = 78}, 9);
    CHECK(values == again);
    CHECK(values != later);
    CHECK(values != other);
    double sum = 0, squares = 0;
    for (const float value : values) {
        sum += value - 1.0;
        squares += (value - 1.0) * (value - 1.0);
    }
    const auto count = static_cast<double>(values.size());
    CHECK(std::abs(sum / count) < 0.03);
    CHECK(std::sqrt(squares / count) == Approx(0.5).epsilon(0.05));
    // An example's noise does not depend on how many come after it in the batch.
    std::vector<float> fewer(10 * 100, 1.0F);
    add_smash_noise(fewer, 10, noise, 9);
    CHECK(std::equal(fewer.begin(), fewer.end(), values.begin()));
    std::vector<float> none(6, 1.0F);
    add_smash_noise(none, 2, {}, 0);
    CHECK(none == std::vector<float>(6, 1.0F));
}

}  // namespace causeway
