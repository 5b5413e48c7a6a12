// Exact sums: one result for all orders and groupings, correct to one rounding, and partial sums that prove themselves.
#include "aggregation/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include <catch2/catch.hpp>

#include "common/digest.h"
#include "kernels/exact.h"

namespace causeway {
namespace {

struct Contribution {
    RangeSet ranges;
    std::vector<float> values;
    std::uint32_t weight = 1;
};

RangeSet random_ranges(std::size_t size, std::mt19937& random) {
    std::vector<Range> ranges;
    for (std::uint64_t at = random() % 20; at < size;) {
        const auto end = std::min<std::uint64_t>(size, at + 1 + random() % (size / 3));
        ranges.push_back({at, end});
        at = end + 1 + random() % 20;
    }
    return *RangeSet::make(ranges, size);
}

enum class Cover { whole, parts };

std::vector<Contribution> random_contributions(std::size_t count, std::size_t size, Cover cover, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> value(0.0f, 0.1f);
    std::vector<Contribution> all(count);
    for (auto& one : all) {
        one.weight = static_cast<std::uint32_t>(1 + random() % 1000);
        one.ranges = cover == Cover::whole ? RangeSet::all(size) : random_ranges(size, random);
        one.values.resize(one.ranges.element_count());
        std::ranges::generate(one.values, [&] { return value(random); });
    }
    return all;
}

void add_all(ExactSum& sum, std::span<const Contribution> all) {
    for (const auto& one : all) {
        sum.add(one.ranges, one.values, one.weight);
    }
}

Digest mean_digest(ExactSum sum) {
    const std::vector<float> start(sum.element_count(), 42.0f);
    const auto mean = sum.take_mean(start);
    return sha256(std::as_bytes(std::span(mean)));
}

/// Leaves of a few contributions each, their partial sums sent as bytes and merged upwards by twos.
ExactSum tree_of(std::span<const Contribution> all, std::size_t size, std::mt19937& random) {
    std::vector<ExactSum> level;
    for (std::size_t at = 0; at < all.size();) {
        const auto n = std::min<std::size_t>(all.size() - at, 1 + random() % 4);
        add_all(level.emplace_back(size), all.subspan(at, n));
        at += n;
    }
    const auto members = static_cast<std::uint32_t>(all.size());
    while (level.size() > 1) {
        const auto bytes = level.back().partial();
        level.pop_back();
        auto received = ExactSum::from_partial(bytes, {size, members, members});
        REQUIRE(received);
        level[random() % level.size()].merge(*received);
    }
    return std::move(level.front());
}

/// One worker's share of the additions on a thread of its own.
ExactSum on_threads(std::span<const Contribution> all, std::size_t size, std::size_t thread_count) {
    std::vector<ExactSum> sums(thread_count, ExactSum(size));
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < thread_count; ++t) {
        threads.emplace_back([&, t] {
            for (std::size_t k = t; k < all.size(); k += thread_count) {
                sums[t].add(all[k].ranges, all[k].values, all[k].weight);
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    for (std::size_t t = 1; t < thread_count; ++t) {
        sums[0].merge(sums[t]);
    }
    return std::move(sums[0]);
}

}  // namespace

TEST_CASE("ten updates of 1000 floats in 100 orders, star, tree and 1 to 16 threads: one SHA-256",
          "[property][paper][case4]") {
    for (const auto cover : {Cover::whole, Cover::parts}) {
        const unsigned seed = 4;
        CAPTURE(seed, cover == Cover::whole);
        auto all = random_contributions(10, 1000, cover, seed);
        std::mt19937 random(seed);
        ExactSum first(1000);
        add_all(first, all);
        const auto expected_partial = first.partial();
        const auto expected = mean_digest(first);
        for (int order = 0; order < 100; ++order) {
            std::ranges::shuffle(all, random);
            ExactSum star(1000);
            add_all(star, all);
            REQUIRE(star.partial() == expected_partial);
            REQUIRE(mean_digest(star) == expected);
            auto tree = tree_of(all, 1000, random);
            REQUIRE(tree.partial() == expected_partial);
            REQUIRE(mean_digest(tree) == expected);
            REQUIRE(mean_digest(on_threads(all, 1000, 1 + order % 16)) == expected);
        }
    }
}

TEST_CASE("the sum equals a 128-bit integer sum, rounded once", "[property][exact_sum]") {
    const unsigned seed = 7;
    CAPTURE(seed);
    const std::size_t size = 257;
    const auto all = random_contributions(60, size, Cover::whole, seed);
    ExactSum sum(size);
    add_all(sum, all);
    std::uint64_t weight = 0;
    std::vector<__int128> slow(size);
    for (const auto& one : all) {
        weight += one.weight;
        for (std::size_t i = 0; i < size; ++i) {
            const double product = static_cast<double>(one.weight) * static_cast<double>(one.values[i]);
            slow[i] += static_cast<__int128>(std::rint(static_cast<long double>(product) * 0x1p62L));
        }
    }
    CHECK(sum.weight_at(0) == weight);
    const auto mean = sum.take_mean(std::vector<float>(size));
    for (std::size_t i = 0; i < size; ++i) {
        const double once = static_cast<double>(slow[i]) * 0x1p-62;
        REQUIRE(mean[i] == static_cast<float>(once / static_cast<double>(weight)));
    }
}

TEST_CASE("the mean of one contributor is its bits, also below the resolution of the sum", "[exact_sum]") {
    const std::vector<float> values{0.1f, -0.0f, std::numeric_limits<float>::denorm_min(), 1e-30f, -3e-22f, 12345.678f};
    const auto same_bits = [&](std::span<const float> mean) {
        return std::ranges::equal(values, mean, [](float a, float b) {
            return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
        });
    };
    ExactSum sum(values.size());
    sum.add(RangeSet::all(values.size()), values, 7);
    sum.add(RangeSet::all(values.size()), std::vector<float>(values.size(), 5.0f), 0);  // reported, adds nothing
    const auto received = ExactSum::from_partial(sum.partial(), {values.size(), 3, 1});
    REQUIRE(received);
    ExactSum merged(values.size());
    merged.merge(*received);
    CHECK(same_bits(merged.take_mean(values)));
    CHECK(same_bits(sum.take_mean(values)));
}

TEST_CASE("weights are summed per range, and what nobody covered keeps its start", "[exact_sum]") {
    ExactSum sum(6);
    sum.add(*RangeSet::make({{0, 4}}, 6), std::vector<float>{1, 1, 1, 1}, 1);
    sum.add(*RangeSet::make({{2, 5}}, 6), std::vector<float>{4, 4, 4}, 3);
    CHECK(sum.weight_at(1) == 1);
    CHECK(sum.weight_at(3) == 4);
    CHECK(sum.weight_at(5) == 0);
    CHECK(sum.covered() == *RangeSet::make({{0, 5}}, 6));
    CHECK(sum.take_mean(std::vector<float>(6, 9.0f)) == std::vector<float>{1, 1, 3.25f, 3.25f, 4, 9});
}

TEST_CASE("ten thousand equal updates at the largest magnitude neither overflow nor drift", "[exact_sum]") {
    // 10,000 additions of |weight * value| just below 2^52 / 10,000 = 2^38.7.
    const std::vector<float> values{0x1.8p9f, -0x1.8p9f, 1e-7f, 123.456f};
    ExactSum sum(values.size());
    for (int k = 0; k < 10'000; ++k) {
        sum.add(RangeSet::all(values.size()), values, 536'870'911);
    }
    CHECK(sum.take_mean(std::vector<float>(values.size())) == values);
}

TEST_CASE("thousands of merges carry in time", "[exact_sum]") {
    const std::vector<float> values{0.3f, -7.7f, 1e-9f};
    ExactSum whole(values.size());
    for (int k = 0; k < 60; ++k) {
        ExactSum part(values.size());
        for (int n = 0; n < 2048; ++n) {
            part.add(RangeSet::all(values.size()), values, 5);
        }
        whole.merge(part);
    }
    CHECK(whole.weight_at(0) == 60u * 2048u * 5u);
    CHECK(whole.take_mean(std::vector<float>(values.size())) == values);
}

TEST_CASE("a partial sum of another model, of impossible weights or limbs, or cut short is refused", "[exact_sum]") {
    const auto all = random_contributions(3, 8, Cover::whole, 1);
    ExactSum sum(8);
    add_all(sum, all);
    const auto good = sum.partial();
    const PartialLimits limits{8, 3, 3};
    REQUIRE(ExactSum::from_partial(good, limits));
    CHECK(ExactSum::from_partial(good, {9, 3, 3}).error().code == "wrong_size");
    for (std::size_t size = 0; size < good.size(); ++size) {
        REQUIRE_FALSE(ExactSum::from_partial(ByteView(good).first(size), limits));
    }
    const std::size_t weight_at = 4 + 2 + 8 + 4 + 16;
    auto heavy = good;
    heavy[weight_at + 7] = std::byte{0x7f};
    CHECK(ExactSum::from_partial(heavy, limits).error().code == "bad_weight");
    auto large = good;
    large[weight_at + 9 + 7] = std::byte{0x7f};
    CHECK(ExactSum::from_partial(large, limits).error().code == "out_of_range");
}

TEST_CASE("ten thousand mutated partial sums give a sum or an error, and what is accepted merges",
          "[fuzz][exact_sum]") {
    const unsigned seed = 99;
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto all = random_contributions(4, 40, Cover::parts, seed);
    ExactSum sum(40);
    add_all(sum, all);
    const auto good = sum.partial();
    for (int i = 0; i < 10'000; ++i) {
        auto bytes = good;
        for (auto n = 1 + random() % 3; n > 0; --n) {
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        }
        const auto received = ExactSum::from_partial(bytes, {40, 8, 4});
        REQUIRE((received || received.error().kind == ErrorKind::corrupt));
        if (received) {
            ExactSum mine = sum;
            mine.merge(*received);
            REQUIRE(mine.take_mean(std::vector<float>(40)).size() == 40);
        }
    }
}

}  // namespace causeway
