// Philox against Random123's published vectors; the draws' distributions against their moments, with fixed seeds.
#include "common/random.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <catch2/catch.hpp>

namespace causeway {

TEST_CASE("Philox4x32-10 gives Random123's known answers", "[common][paper]") {
    using Block = std::array<std::uint32_t, 4>;
    CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("equal keys give equal streams and any difference gives another", "[common][property]") {
    const RandomKey key{.seed = 7, .purpose = "test", .round = 1, .node = 2, .step = 3, .layer = 4};
    std::vector<RandomKey> others(6, key);
    others[0].seed = 8;
    others[1].purpose = "tess";
    others[2].round = 2;
    others[3].node = 3;
    others[4].step = 4;
    others[5].layer = 5;
    std::set<std::uint64_t> firsts{RandomStream(key).next_u64()};
    CHECK(firsts.contains(RandomStream(key).next_u64()));
    for (const auto& other : others) {
        firsts.insert(RandomStream(other).next_u64());
    }
    CHECK(firsts.size() == 7);
}

TEST_CASE("seek goes to a sample's own numbers", "[common][unit]") {
    RandomStream walked({.seed = 1, .purpose = "seek"});
    for (int i = 0; i < 20; ++i) {
        walked.next_u32();
    }
    RandomStream jumped({.seed = 1, .purpose = "seek"});
    jumped.seek(5);
    CHECK(jumped.next_u32() == walked.next_u32());
}

TEST_CASE("draws have the moments of their distributions", "[common][property]") {
    constexpr int count = 200'000;
    RandomStream random({.seed = 3, .purpose = "moments"});
    double sum = 0;
    double squares = 0;
    double uniforms = 0;
    for (int i = 0; i < count; ++i) {
        const double x = random.normal();
        sum += x;
        squares += x * x;
        uniforms += random.uniform();
    }
    CHECK(std::abs(sum / count) < 0.01);
    CHECK(squares / count == Approx(1).margin(0.02));
    CHECK(uniforms / count == Approx(0.5).margin(0.005));
    for (const double shape : {0.1, 0.5, 1.0, 4.0}) {
        double total = 0;
        for (int i = 0; i < count; ++i) {
            total += random.gamma(shape);
        }
        CHECK(total / count == Approx(shape).epsilon(0.03));
    }
}

TEST_CASE("below is even over a bound that is no power of two, and permutations hold each index once",
          "[common][property]") {
    RandomStream random({.seed = 4, .purpose = "below"});
    std::array<int, 3> hits{};
    for (int i = 0; i < 30'000; ++i) {
        ++hits[random.below(3)];
    }
    for (const int hit : hits) {
        CHECK(std::abs(hit - 10'000) < 400);
    }
    auto order = random.permutation(1000);
    CHECK_FALSE(std::ranges::is_sorted(order));
    std::ranges::sort(order);
    for (std::uint32_t i = 0; i < 1000; ++i) {
        REQUIRE(order[i] == i);
    }
}

}  // namespace causeway
