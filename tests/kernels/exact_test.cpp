// Exact sums against a big integer, in every order and grouping, and at the limits of their promises.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "common/random.h"
#include "kernels/cpu/streaming.h"
#include "kernels/exact.h"

namespace causeway {
namespace {

__extension__ using Wide = __int128;

struct SummedUpdate {
    std::vector<float> values;
    std::int64_t weight;
    [[nodiscard]] ExactTerm term() const { return {values.data(), weight}; }
};

struct Limbs {
    std::vector<std::int64_t> high, low;
    explicit Limbs(std::size_t size) : high(size), low(size) {}
    void add(std::span<const ExactTerm> terms) { exact_accumulate(high, low, terms); }
    void add(const SummedUpdate& update) { add(std::vector{update.term()}); }
    void carry() { exact_carry(high, low); }
    [[nodiscard]] std::vector<std::uint32_t> mean_bits(std::int64_t weight) const {
        std::vector<float> mean(high.size());
        exact_mean(high, low, weight, mean);
        std::vector<std::uint32_t> bits;
        std::ranges::transform(mean, std::back_inserter(bits), [](float x) { return std::bit_cast<std::uint32_t>(x); });
        return bits;
    }
    bool operator==(const Limbs&) const = default;
};

/// Finite values over 80 binades, weights up to the limit; |weight * value| * 64 additions stays below 2^52.
std::vector<SummedUpdate> random_updates(std::size_t count, std::size_t size, std::uint64_t seed) {
    RandomStream random({.seed = seed, .purpose = "exact test"});
    std::vector<SummedUpdate> updates(count);
    for (auto& update : updates) {
        const auto bits = random.below(30);
        update.weight = static_cast<std::int64_t>(random.below(std::uint64_t{1} << bits));
        for (std::size_t i = 0; i < size; ++i) {
            const auto exponent = static_cast<int>(random.below(75)) - 60;
            update.values.push_back(static_cast<float>(std::ldexp(random.uniform() * 2 - 1, exponent)));
        }
    }
    return updates;
}

/// weight * value in units of 2^-62 as an integer, rounded to nearest even, from the float's own bits.
Wide product_units(float value, std::int64_t weight) {
    if (value == 0 || weight == 0) {
        return 0;
    }
    int exponent = 0;
    // value = mantissa * 2^(exponent - 24)
    const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 24));
    const int shift = exponent - 24 + 62;
    const Wide product = Wide{mantissa} * weight;
    if (shift >= 0) {
        return product * (Wide{1} << shift);
    }
    if (shift < -100) {
        return 0;
    }
    const Wide unit = Wide{1} << -shift;
    const Wide floor = product >= 0 ? product / unit : -((-product + unit - 1) / unit);
    const Wide rest = product - floor * unit;
    const bool up = 2 * rest > unit || (2 * rest == unit && floor % 2 != 0);
    return floor + (up ? 1 : 0);
}

std::vector<Wide> integer_sums(const std::vector<SummedUpdate>& updates) {
    std::vector<Wide> sums(updates.front().values.size(), 0);
    for (const auto& update : updates) {
        for (std::size_t i = 0; i < sums.size(); ++i) {
            sums[i] += product_units(update.values[i], update.weight);
        }
    }
    return sums;
}

}  // namespace

TEST_CASE("a sum is the integer sum of its products in units of 2^-62", "[kernels][property]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        const auto updates = random_updates(30, 61, seed);
        const auto sums = integer_sums(updates);
        Limbs limbs(61);
        std::ranges::for_each(updates, [&](const SummedUpdate& update) { limbs.add(update); });
        for (std::size_t i = 0; i < sums.size(); ++i) {
            REQUIRE(Wide{limbs.high[i]} * (Wide{1} << 52) + limbs.low[i] == sums[i]);
        }
        limbs.carry();
        std::vector<float> mean(61);
        exact_mean(limbs.high, limbs.low, 12345, mean);
        for (std::size_t i = 0; i < sums.size(); ++i) {
            REQUIRE(Wide{limbs.high[i]} * (Wide{1} << 52) + limbs.low[i] == sums[i]);
            REQUIRE(std::abs(limbs.low[i]) <= std::int64_t{1} << 51);
            REQUIRE(mean[i] == static_cast<float>(static_cast<double>(sums[i]) * 0x1p-62 / 12345.0));
        }
    }
}

TEST_CASE("order, grouping into passes, partial sums and instruction sets leave no trace", "[kernels][property]") {
    const auto updates = random_updates(23, 129, 5);
    Limbs expected(129);
    std::ranges::for_each(updates, [&](const SummedUpdate& update) { expected.add(update); });
    expected.carry();
    RandomStream random({.seed = 9, .purpose = "order"});
    for (const auto set : cpu::instruction_sets()) {
        cpu::use_instruction_set(set);
        for (int round = 0; round < 20; ++round) {
            const auto order = random.permutation(updates.size());
            Limbs left(129), right(129);
            std::vector<ExactTerm> terms;
            std::ranges::for_each(order, [&](auto k) { terms.push_back(updates[k].term()); });
            const auto cut = random.below(terms.size() + 1);
            left.add(std::span(terms).first(cut));
            right.add(std::span(terms).subspan(cut));
            left.carry();
            exact_merge(left.high, left.low, right.high, right.low);
            left.carry();
            INFO(set << ", round " << round << ", cut " << cut);
            REQUIRE(left == expected);
            REQUIRE(left.mean_bits(99) == expected.mean_bits(99));
        }
    }
    cpu::use_instruction_set("");
}

TEST_CASE("2048 additions at the limit of a product overflow neither limb", "[kernels]") {
    // Products just below 2^41, 2048 of them below 2^52, whose low limb takes nearly its largest value each time.
    const float value = 4095.9998f;
    const std::int64_t weight = (std::int64_t{1} << 29) - 1;
    const std::vector<SummedUpdate> updates(exact_additions_per_carry,
                                            SummedUpdate{{value, -value, 0.00048828122f}, weight});
    const auto sums = integer_sums(updates);
    Limbs limbs(3);
    std::ranges::for_each(updates, [&](const SummedUpdate& update) { limbs.add(update); });
    limbs.carry();
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(Wide{limbs.high[i]} * (Wide{1} << 52) + limbs.low[i] == sums[i]);
    }
    std::vector<float> mean(3);
    exact_mean(limbs.high, limbs.low, weight * exact_additions_per_carry, mean);
    CHECK(mean == updates.front().values);
}

TEST_CASE("the mean of one contributor is that contributor's bits", "[kernels]") {
    for (const std::int64_t weight : {std::int64_t{1}, std::int64_t{3}, exact_weight_limit - 1}) {
        // Values whose last bit is worth at least 2^-62; smaller ones are rounded to that unit.
        const SummedUpdate update{{1.0f, -0.1f, 1e-9f, 123.456f, -7e4f, 0.0f, 3e-11f, 1.5f, 2.5f}, weight};
        Limbs limbs(update.values.size());
        limbs.add(update);
        std::vector<float> mean(update.values.size());
        exact_mean(limbs.high, limbs.low, weight, mean);
        CHECK(mean == update.values);
    }
}

}  // namespace causeway
