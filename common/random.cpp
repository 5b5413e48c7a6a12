// Philox4x32-10 and the draws made from it. Every draw consumes a known count of 32-bit numbers.
#include "common/random.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "common/assert.h"
#include "common/digest.h"

namespace causeway {
namespace {

// Constants of Salmon et al. 2011, table 2: two multipliers and the Weyl increments of the key.
constexpr std::uint64_t multiplier0 = 0xD2511F53;
constexpr std::uint64_t multiplier1 = 0xCD9E8D57;
constexpr std::uint32_t weyl0 = 0x9E3779B9;
constexpr std::uint32_t weyl1 = 0xBB67AE85;
constexpr int rounds = 10;

std::uint32_t low(std::uint64_t value) {
    return static_cast<std::uint32_t>(value);
}
std::uint32_t high(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t product0 = multiplier0 * counter[0];
        const std::uint64_t product1 = multiplier1 * counter[2];
        counter = {high(product1) ^ counter[1] ^ key[0], low(product1), high(product0) ^ counter[3] ^ key[1],
                   low(product0)};
        key = {key[0] + weyl0, key[1] + weyl1};
    }
    return counter;
}

std::uint64_t node_key(std::string_view node_name) {
    const auto digest = sha256(node_name);
    ByteReader reader(digest.bytes);
    return *reader.get<std::uint64_t>();
}

RandomStream::RandomStream(const RandomKey& key) {
    ByteWriter text;
    text.put(key.seed);
    text.put(key.round);
    text.put(key.node);
    text.put(key.step);
    text.put(key.layer);
    text.put_text(key.purpose);
    const auto digest = sha256(text.take());
    ByteReader reader(digest.bytes);
    key_ = {*reader.get<std::uint32_t>(), *reader.get<std::uint32_t>()};
    high_ = {*reader.get<std::uint32_t>(), *reader.get<std::uint32_t>()};
}

std::uint32_t RandomStream::next_u32() {
    if (used_ == 4) {
        block_ = philox4x32({low(index_), high(index_), high_[0], high_[1]}, key_);
        ++index_;
        used_ = 0;
    }
    return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t RandomStream::next_u64() {
    const std::uint64_t first = next_u32();
    return first | std::uint64_t{next_u32()} << 32;
}

double RandomStream::uniform() {
    return static_cast<double>(next_u64() >> 11) * 0x1p-53;
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
    ASSERT(bound > 0);
    const std::uint64_t unbiased = std::uint64_t(-1) - std::uint64_t(-1) % bound;
    std::uint64_t value = next_u64();
    while (value >= unbiased) {
        value = next_u64();
    }
    return value % bound;
}

double RandomStream::normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
}

double RandomStream::gamma(double shape) {
    ASSERT(shape > 0);
    if (shape < 1) {
        const double boosted = gamma(shape + 1);
        return boosted * std::pow(1 - uniform(), 1 / shape);
    }
    const double d = shape - 1.0 / 3;
    const double c = 1 / std::sqrt(9 * d);
    while (true) {
        const double x = normal();
        const double v = std::pow(1 + c * x, 3);
        if (v > 0 && std::log(1 - uniform()) < x * x / 2 + d - d * v + d * std::log(v)) {
            return d * v;
        }
    }
}

std::vector<std::uint32_t> RandomStream::permutation(std::size_t count) {
    ASSERT(count <= 0xffffffffu);
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    for (std::size_t i = count; i > 1; --i) {
        std::swap(order[i - 1], order[below(i)]);
    }
    return order;
}

void RandomStream::seek(std::uint64_t index) {
    index_ = index;
    used_ = 4;
}

}  // namespace causeway
