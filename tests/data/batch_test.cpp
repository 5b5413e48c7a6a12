// Batches: each example once an epoch, the order a function of its keys alone.
#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "common/random.h"
#include "data/batch_order.h"
#include "samples.h"

namespace causeway {
namespace {

Indices order_of(std::size_t examples, std::size_t batch, const BatchKey& key) {
    const EpochBatches batches(examples, batch, key);
    Indices order;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        order.insert(order.end(), batches[i].begin(), batches[i].end());
    }
    return order;
}

}  // namespace

TEST_CASE("an epoch sees each example once, in batches of which only the last is short", "[data][property]") {
    for (std::size_t examples = 1; examples < 70; ++examples) {
        for (const std::size_t batch : {0, 1, 2, 7, 32, 69, 1000}) {
            CAPTURE(examples, batch);
            const BatchKey key{7, examples, 3, 0};
            const EpochBatches batches(examples, batch, key);
            REQUIRE(batches.size() == batch_count(examples, batch));
            for (std::size_t i = 0; i + 1 < batches.size(); ++i) {
                REQUIRE(batches[i].size() == batch);
            }
            auto order = order_of(examples, batch, key);
            std::ranges::sort(order);
            for (std::size_t i = 0; i < examples; ++i) {
                REQUIRE(order[i] == i);
            }
            REQUIRE(order.size() == examples);
        }
    }
    CHECK(EpochBatches(0, 32, {}).size() == 0);
}

TEST_CASE("the full batch is the dataset in its own order", "[data][unit]") {
    CHECK(order_of(5, 0, {1, 2, 3, 4}) == Indices{0, 1, 2, 3, 4});
    CHECK(order_of(5, 5, {1, 2, 3, 4}) == Indices{0, 1, 2, 3, 4});
    CHECK(EpochBatches(5, 9, {}).size() == 1);
}

TEST_CASE("equal keys give equal orders, any difference another", "[data][property]") {
    const auto a = node_key("site-a");
    const BatchKey key{7, 2, a, 1};
    CHECK(order_of(100, 8, key) == order_of(100, 8, key));
    CHECK(order_of(100, 8, key) == order_of(100, 16, key));
    std::set<Indices> orders{order_of(100, 8, key)};
    orders.insert(order_of(100, 8, {8, 2, a, 1}));
    orders.insert(order_of(100, 8, {7, 3, a, 1}));
    orders.insert(order_of(100, 8, {7, 2, node_key("site-b"), 1}));
    orders.insert(order_of(100, 8, {7, 2, a, 2}));
    CHECK(orders.size() == 5);
}

TEST_CASE("gather copies the examples asked for", "[data][unit]") {
    const auto dataset = random_dataset(10, 3, {2, 2}, 1);
    const Indices indices{7, 0, 7};
    std::vector<float> features(12);
    std::vector<std::uint32_t> labels(3);
    gather(dataset, indices, features, labels);
    const auto expected = subset(dataset, indices);
    CHECK(features == expected.features);
    CHECK(labels == expected.labels);
    gather(dataset, indices, features, {});
}

}  // namespace causeway
