// Batches that a thread prepares are the batches of no thread, wherever a run begins and however it asks.
#include "configs/prefetch.h"

#include <catch2/catch.hpp>

#include "configs/batches.h"

namespace causeway {
namespace {

/// Large enough to be worth a thread, each value its own.
Dataset images(std::size_t examples) {
    Dataset dataset{"images", "test", {64, 64, 2}, {}, {}, 10, {}};
    for (std::size_t i = 0; i < examples * dataset.example_size(); ++i) {
        dataset.features.push_back(static_cast<float>(i % 65'521));
    }
    for (std::size_t i = 0; i < examples; ++i) {
        dataset.labels.push_back(static_cast<std::uint32_t>(i % 10));
    }
    return dataset;
}

const BatchKey key{.seed = 3, .round = 2, .node = 1};

BatchPlan prefetch_plan_of(std::size_t batch, std::size_t microbatch) {
    return {.batch = batch, .microbatch = microbatch, .augment = {*parse_augment("crop 3"), *parse_augment("flip")}};
}

/// The places of some epochs from one on, as a trainer asks for them.
std::vector<BatchPlace> places(BatchMaker& maker, BatchPlace first, std::size_t count) {
    std::vector<BatchPlace> list{first};
    while (list.size() < count) {
        list.push_back(maker.next(list.back()));
    }
    return list;
}

}  // namespace

TEST_CASE("the thread's batches are those that one would make oneself", "[property][prefetch]") {
    const Dataset dataset = images(23);
    const auto [batch, microbatch] =
        GENERATE(std::pair<std::size_t, std::size_t>{8, 0}, std::pair<std::size_t, std::size_t>{8, 3},
                 std::pair<std::size_t, std::size_t>{0, 0}, std::pair<std::size_t, std::size_t>{0, 10});
    CAPTURE(batch, microbatch);
    BatchMaker maker(dataset, prefetch_plan_of(batch, microbatch), key);
    REQUIRE(maker.worth_a_thread());
    const std::uint64_t size = microbatch > 0 ? microbatch : batch > 0 ? batch : 23;
    for (const BatchPlace& first :
         {BatchPlace{.rows = size}, maker.next({.epoch = 1, .rows = size})}) {  // or in the middle
        TrainingBatches batches(dataset, prefetch_plan_of(batch, microbatch), key);
        for (const BatchPlace& place : places(maker, first, 12)) {
            std::vector<float> features(place.rows * dataset.example_size()), wanted(features.size()), ignored;
            std::vector<std::int64_t> labels(place.rows);
            std::vector<std::uint32_t> wanted_labels;
            REQUIRE(batches.load(place, features, labels));
            maker.make(place, wanted, wanted_labels, ignored);
            REQUIRE(features == wanted);
            REQUIRE(std::ranges::equal(labels, wanted_labels));
        }
    }
}

TEST_CASE("places follow each other through microbatches, batches and epochs", "[unit][prefetch]") {
    const Dataset dataset = images(5);
    BatchMaker maker(dataset, prefetch_plan_of(4, 3), key);
    std::vector<std::array<std::uint64_t, 4>> found;
    for (const BatchPlace& place : places(maker, {.rows = 3}, 5)) {
        found.push_back({place.epoch, place.batch, place.first, place.rows});
    }
    CHECK(found == std::vector<std::array<std::uint64_t, 4>>{
                       {0, 0, 0, 3}, {0, 0, 3, 1}, {0, 1, 4, 1}, {1, 0, 0, 3}, {1, 0, 3, 1}});
}

TEST_CASE("an order that nobody foresaw gets its batches all the same", "[unit][prefetch]") {
    const Dataset dataset = images(24);
    TrainingBatches batches(dataset, prefetch_plan_of(8, 0), key);
    BatchMaker maker(dataset, prefetch_plan_of(8, 0), key);
    for (const std::uint64_t first : {0u, 16u, 8u, 8u}) {
        const BatchPlace place{.batch = first / 8, .first = first, .rows = 8};
        std::vector<float> features(8 * dataset.example_size()), wanted(features.size()), ignored;
        std::vector<std::int64_t> labels(8);
        std::vector<std::uint32_t> wanted_labels;
        REQUIRE(batches.load(place, features, labels));
        maker.make(place, wanted, wanted_labels, ignored);
        REQUIRE(features == wanted);
    }
}

TEST_CASE("an example is augmented the same in any microbatch, and anew in each epoch", "[property][prefetch]") {
    const Dataset dataset = images(16);
    const auto epoch_of = [&](std::size_t microbatch, std::uint64_t epoch) {
        BatchMaker maker(dataset, prefetch_plan_of(8, microbatch), key);
        std::vector<float> all;
        const std::uint64_t rows = microbatch > 0 ? microbatch : 8;
        for (BatchPlace place{.epoch = epoch, .rows = rows}; place.epoch == epoch; place = maker.next(place)) {
            std::vector<float> features(place.rows * dataset.example_size()), ignored;
            std::vector<std::uint32_t> labels;
            maker.make(place, features, labels, ignored);
            all.insert(all.end(), features.begin(), features.end());
        }
        return all;
    };
    CHECK(epoch_of(0, 0) == epoch_of(3, 0));
    CHECK(epoch_of(0, 0) != epoch_of(0, 1));
}

}  // namespace causeway
