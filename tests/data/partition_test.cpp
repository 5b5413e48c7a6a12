// Partitions, over many seeds: each example once, the same every time, and as uneven as asked.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>

#include "data/partition.h"
#include "data/partition_tools.h"
#include "samples.h"

namespace causeway {
namespace {

std::vector<PartitionSpec> every_kind() {
    return {{"iid", {}},
            {"dirichlet", {{"alpha", 0.001}}},
            {"dirichlet", {{"alpha", 0.5}}},
            {"dirichlet", {{"alpha", 1e6}}},
            {"shards", {{"labels", 2}}},
            {"quantity", {{"power", 0}}},
            {"quantity", {{"power", 10}}}};
}

bool covers_once(const std::vector<Indices>& parts, std::size_t examples) {
    std::vector<int> seen(examples);
    for (const auto& part : parts) {
        for (const auto index : part) {
            ++seen.at(index);
        }
    }
    return std::ranges::all_of(seen, [](int times) { return times == 1; });
}

// Mean over parts of the total variation distance between the part's label shares and the whole's.
double skew(const Dataset& dataset, const Parts& parts) {
    const auto whole = label_histogram(dataset);
    double sum = 0;
    for (const auto& part : parts) {
        const auto counts = label_histogram(dataset, part);
        for (std::size_t label = 0; label < counts.size(); ++label) {
            sum += std::abs(static_cast<double>(counts[label]) / static_cast<double>(part.size()) -
                            static_cast<double>(whole[label]) / static_cast<double>(dataset.size())) /
                   2;
        }
    }
    return sum / static_cast<double>(parts.size());
}

double mean_skew(const Dataset& dataset, double alpha) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        sum += skew(dataset, *partition(dataset, {"dirichlet", {{"alpha", alpha}}}, 8, seed));
    }
    return sum / 20;
}

std::string partition_error(const PartitionSpec& spec, const Dataset& dataset, std::size_t parts) {
    const auto result = partition(dataset, spec, parts, 1);
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == ErrorKind::invalid);
    return result.error().message;
}

}  // namespace

TEST_CASE("every example is in exactly one part, no part is empty, and a seed repeats", "[data][property]") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const auto dataset = random_dataset(100 + seed * 7, 10, {1}, static_cast<unsigned>(seed));
        for (const auto& spec : every_kind()) {
            for (const std::size_t parts : {5, 13, 50}) {
                CAPTURE(seed, to_text(spec), parts);
                const auto drawn = partition(dataset, spec, parts, seed);
                if (!drawn) {  // shards: a small class for many owners
                    REQUIRE(spec.kind == "shards");
                    continue;
                }
                REQUIRE(drawn->size() == parts);
                REQUIRE(covers_once(*drawn, dataset.size()));
                REQUIRE(std::ranges::none_of(*drawn, &Indices::empty));
                REQUIRE(std::ranges::all_of(*drawn, [](const Indices& part) { return std::ranges::is_sorted(part); }));
                REQUIRE(partition(dataset, spec, parts, seed) == drawn);
                REQUIRE(partition(dataset, spec, parts, seed + 1) != drawn);
            }
        }
    }
}

TEST_CASE("as many parts as examples gives one each", "[data][unit]") {
    const auto dataset = random_dataset(12, 3, {1}, 5);
    for (const auto& spec :
         {PartitionSpec{"iid", {}}, {"dirichlet", {{"alpha", 0.01}}}, {"quantity", {{"power", 10}}}}) {
        const auto drawn = partition(dataset, spec, 12, 3);
        REQUIRE(drawn);
        CHECK(std::ranges::all_of(*drawn, [](const Indices& part) { return part.size() == 1; }));
    }
}

TEST_CASE("iid parts are equal in size to within one", "[data][unit]") {
    const auto drawn = partition(random_dataset(103, 10, {1}, 1), {"iid", {}}, 10, 7);
    for (const auto& part : *drawn) {
        CHECK((part.size() == 10 || part.size() == 11));
    }
}

TEST_CASE("dirichlet parts grow more uneven as alpha falls", "[data][property]") {
    const auto dataset = random_dataset(2000, 10, {1}, 9);
    double before = 0;
    for (const double alpha : {1000.0, 10.0, 1.0, 0.3, 0.05}) {
        CAPTURE(alpha);
        const double now = mean_skew(dataset, alpha);
        CHECK(now > before);
        before = now;
    }
    CHECK(mean_skew(dataset, 1e6) < 0.05);
    CHECK(mean_skew(dataset, 0.05) > 0.6);
}

TEST_CASE("shards parts hold exactly as many labels as asked, owners spread evenly", "[data][property]") {
    const auto dataset = random_dataset(3000, 10, {1}, 4);
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        for (const std::size_t labels : {1, 2, 3, 10}) {
            CAPTURE(seed, labels);
            const auto drawn = partition(dataset, {"shards", {{"labels", static_cast<double>(labels)}}}, 12, seed);
            REQUIRE(drawn);
            std::vector<std::size_t> owners(10);
            for (const auto& part : *drawn) {
                const auto counts = label_histogram(dataset, part);
                REQUIRE(counts.size() - std::ranges::count(counts, 0u) == labels);
                for (std::size_t label = 0; label < counts.size(); ++label) {
                    owners[label] += counts[label] > 0 ? 1 : 0;
                }
            }
            const auto [least, most] = std::ranges::minmax(owners);
            REQUIRE(most - least <= 1);
        }
    }
}

TEST_CASE("quantity parts follow the power law", "[data][unit]") {
    const auto drawn = partition(random_dataset(10'000, 10, {1}, 2), {"quantity", {{"power", 1}}}, 4, 3);
    std::vector<std::size_t> sizes;
    for (const auto& part : *drawn) {
        sizes.push_back(part.size());
    }
    std::ranges::sort(sizes, std::greater{});
    CHECK(sizes == std::vector<std::size_t>{4800, 2400, 1600, 1200});
}

TEST_CASE("counts in proportion always add up", "[data][property]") {
    std::mt19937 random(6);
    for (int i = 0; i < 2000; ++i) {
        std::vector<double> weights(1 + random() % 30);
        std::ranges::generate(weights, [&] { return std::exp(static_cast<double>(random() % 100) - 50.0); });
        const std::size_t total = random() % 5000;
        CAPTURE(i, total);
        const auto counts = proportional_counts(weights, total);
        REQUIRE(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) == total);
    }
}

TEST_CASE("a partition that cannot be is refused with the reason", "[data][unit]") {
    const auto dataset = random_dataset(20, 10, {1}, 1);
    CHECK_THAT(partition_error({"iid", {}}, dataset, 0), Catch::Contains("number of parts is 0"));
    CHECK_THAT(partition_error({"iid", {}}, dataset, 21), Catch::Contains("only 20 examples"));
    CHECK_THAT(partition_error({"shards", {{"labels", 11}}}, dataset, 2), Catch::Contains("has 10 classes"));
    CHECK_THAT(partition_error({"shards", {{"labels", 2}}}, dataset, 4), Catch::Contains("cannot hold all 10"));
    CHECK_THAT(partition_error({"shards", {{"labels", 10}}}, dataset, 20), Catch::Contains("examples for 20 parts"));
    CHECK_THAT(partition_error({"dirichlet", {}}, random_dataset(20, 0, {1}, 1), 2), Catch::Contains("no labels"));
    CHECK_THAT(partition_error({"dirichle", {}}, dataset, 2), Catch::Contains("did you mean 'dirichlet'"));
}

TEST_CASE("a specification reports all its mistakes, and its text reads back", "[data][unit]") {
    CHECK(check_partition({"dirichlet", {{"alhpa", 1}, {"alpha", -1}, {"beta", NAN}}}).size() == 3);
    CHECK_THAT(check_partition({"dirichlet", {{"alpa", 1}}})[0].message, Catch::Contains("did you mean 'alpha'"));
    CHECK(check_partition({"shards", {{"labels", 1.5}}}).size() == 1);
    CHECK(check_partition({"iid", {{"alpha", 1}}}).size() == 1);
    CHECK(parse_partition("dirichlet alpha=0.5") == PartitionSpec{"dirichlet", {{"alpha", 0.5}}});
    CHECK(parse_partition(" shards ") == PartitionSpec{"shards", {{"labels", 2}}});
    CHECK(to_text(*parse_partition("quantity  power=1.5")) == "quantity power=1.5");
    for (const auto* wrong :
         {"", "dirichlet alpha", "dirichlet alpha=x", "dirichlet alpha=1 alpha=2", "iid alpha=nan"}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_partition(wrong));
    }
    for (const auto* partitioner : partitioners()) {
        CHECK(parse_partition(partitioner->kind));
    }
}

TEST_CASE("the holdout takes its share of every class and nothing twice", "[data][property]") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const auto dataset = random_dataset(150 + seed, seed % 5 == 0 ? 0 : 7, {1}, static_cast<unsigned>(seed));
        for (const double share : {0.0, 0.01, 0.2, 0.5, 0.95}) {
            CAPTURE(seed, share);
            const auto holdout = split_holdout(dataset, share, seed);
            REQUIRE(holdout);
            REQUIRE(covers_once({holdout->train, holdout->held_out}, dataset.size()));
            REQUIRE(holdout->held_out.size() ==
                    static_cast<std::size_t>(std::llround(share * static_cast<double>(dataset.size()))));
            const auto whole = label_histogram(dataset);
            const auto held = label_histogram(dataset, holdout->held_out);
            for (std::size_t label = 0; label < whole.size(); ++label) {
                REQUIRE(std::abs(static_cast<double>(held[label]) - share * static_cast<double>(whole[label])) <= 1.01);
            }
            REQUIRE(split_holdout(dataset, share, seed)->held_out == holdout->held_out);
        }
    }
}

TEST_CASE("a holdout that leaves a side empty is refused", "[data][unit]") {
    const auto dataset = random_dataset(10, 2, {1}, 1);
    for (const double share : {-0.1, 1.0, 1.5, 0.01, 0.99, std::nan("")}) {
        CAPTURE(share);
        const auto holdout = split_holdout(dataset, share, 1);
        REQUIRE_FALSE(holdout);
        CHECK(holdout.error().code == "holdout");
    }
}

TEST_CASE("a division hands out every example once, the held-out ones to no part", "[data][property]") {
    const auto dataset = random_dataset(300, 10, {1}, 3);
    const auto division = divide(dataset, 0.2, {"dirichlet", {{"alpha", 0.5}}}, 5, 7);
    REQUIRE(division);
    CHECK(division->held_out.size() == 60);
    auto all = division->parts;
    all.push_back(division->held_out);
    CHECK(covers_once(all, 300));
}

}  // namespace causeway
