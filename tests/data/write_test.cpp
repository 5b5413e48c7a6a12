// Written parts: the options that read the source read the part, bit for bit.
#include <bit>
#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "data/csv.h"
#include "data/gzip.h"
#include "data/reader.h"
#include "data/write.h"
#include "samples.h"

namespace causeway {
namespace {

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
    std::vector<std::uint32_t> bits;
    for (const float value : values) {
        bits.push_back(std::bit_cast<std::uint32_t>(value));
    }
    return bits;
}

Dataset read_back(const Dataset& raw, const DataOptions& options) {
    const auto text = gunzip(encode_part(raw), 1 << 24);
    REQUIRE(text);
    auto dataset = parse_csv(*text, "part", options, {});
    INFO((dataset ? "" : dataset.error().message));
    REQUIRE(dataset);
    return *std::move(dataset);
}

// Splits a source file and checks that parts and holdout are the source's examples under the same options.
void check_split(const std::filesystem::path& source, const DataOptions& options, const DividePlan& plan) {
    const TempFolder folder;
    const auto raw = read_raw_dataset(source, options);
    REQUIRE(raw);
    const auto written = write_split(*raw, plan, folder / "parts");
    INFO((written ? "" : written.error().message));
    REQUIRE(written);
    REQUIRE(written->size() == plan.parts + (plan.holdout > 0 ? 1 : 0));
    const auto whole = *read_dataset(source, options);
    const auto division = *divide(*raw, plan.holdout, plan.partition, plan.parts, plan.seed);
    for (std::size_t i = 0; i < written->size(); ++i) {
        const auto& indices = i < plan.parts ? division.parts[i] : division.held_out;
        const auto part = read_dataset((*written)[i].path, options);
        REQUIRE(part);
        const auto expected = subset(whole, indices);
        CHECK(bits_of(part->features) == bits_of(expected.features));
        CHECK(part->labels == expected.labels);
        CHECK(part->shape == expected.shape);
        CHECK(part->classes == expected.classes);
        CHECK(dataset_digest(*part) == dataset_digest(expected));
        CHECK((*written)[i].examples == indices.size());
    }
}

std::string table_text(bool header) {
    const auto data = random_dataset(60, 4, {6}, 8);
    std::string text = header ? "a,\"b, c\",#d,label,\"e\"\"e\",f,g\n" : "";
    for (std::size_t row = 0; row < data.size(); ++row) {
        for (std::size_t column = 0; column < 6; ++column) {
            text += column == 3 ? fmt::format("{},", data.labels[row]) : "";
            text += fmt::format("{}{}", data.features[row * 6 + column], column == 5 ? "\n" : ",");
        }
    }
    return text;
}

const DividePlan plan{3, 0.2, {"dirichlet", {{"alpha", 0.5}}}, 7};

}  // namespace

TEST_CASE("every float comes back with its bits", "[data][property]") {
    std::mt19937 random(31);
    Dataset raw{"bits", "test", {4}, {}, {}, 0, {}};
    using Limits = std::numeric_limits<float>;
    raw.features = {0.0f, -0.0f,      Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(),
                    0.1f, 16777217.0f};
    while (raw.features.size() < 40'000) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        raw.features.push_back(std::isfinite(value) ? value : 1.0f);
    }
    CHECK(bits_of(read_back(raw, {}).features) == bits_of(raw.features));
}

TEST_CASE("equal parts have equal bytes, and keep label, classes and shape", "[data][write]") {
    const auto raw = random_dataset(30, 10, {2, 3}, 2);
    CHECK(encode_part(raw) == encode_part(raw));
    const auto part = subset(raw, Indices{0, 1, 2});
    const auto back = read_back(part, {});
    CHECK(back.classes == 10);
    CHECK(back.shape == std::vector<std::int64_t>{2, 3});
    CHECK(dataset_digest(back) == dataset_digest(part));
    CHECK(dataset_digest(read_back(part, {"last", {}, {}})) == dataset_digest(part));
}

TEST_CASE("a split CSV reads back with the options of its source", "[data][write]") {
    const TempFolder folder;
    const auto plain = folder.put("plain.csv", table_text(false));
    const auto headed = folder.put("headed.csv.gz", gzip(as_bytes(table_text(true))));
    check_split(plain, {"3", {2, 3, 1}, Scale{{-300, 300}, {0, 1}}}, plan);
    check_split(headed, {"label", {}, {}}, plan);
    check_split(headed, {"label", {6, 1}, Scale{{0, 7}, {-1, 1}}}, plan);
    check_split(plain, {}, {2, 0, {"iid", {}}, 1});
    check_split(headed, {}, {2, 0.5, {"quantity", {}}, 1});
}

TEST_CASE("a split IDX or NPY set reads back with the options of its source", "[data][write]") {
    const TempFolder folder;
    const auto images = folder.put("x-images-idx3-ubyte", idx_bytes(0x08, {50, 2, 3}, byte_values(300, 256)));
    folder.put("x-labels-idx1-ubyte", idx_bytes(0x08, {50}, byte_values(50, 5)));
    check_split(images, {"", {}, Scale{{0, 255}, {0, 1}}}, plan);
    check_split(images, {"", {2, 3, 1}, {}}, plan);
    std::vector<double> values;
    for (int i = 0; i < 200; ++i) {
        values.push_back(i % 5 == 1 ? i % 3 : i / 7.0);
    }
    check_split(folder.put("y.npy", npy_array("<f8", "(40, 5)", values)), {"1", {}, {}}, plan);
}

TEST_CASE("a folder of parts is the union of the parts, without the holdout", "[data][write]") {
    const TempFolder folder;
    const auto raw = random_dataset(120, 4, {5}, 3);
    REQUIRE(write_split(raw, {11, 0.25, {"iid", {}}, 5}, folder / "out"));
    const auto division = *divide(raw, 0.25, {"iid", {}}, 11, 5);
    Indices all;
    for (const auto& part : division.parts) {
        all.insert(all.end(), part.begin(), part.end());
    }
    const auto whole = read_dataset(folder / "out", {"last", {}, {}});
    REQUIRE(whole);
    CHECK(whole->name == "out");
    CHECK(dataset_digest(*whole) == dataset_digest(subset(raw, all)));
}

TEST_CASE("parts that differ are not joined", "[data][write]") {
    const TempFolder folder;
    folder.put("part-1.csv.gz", "1,2,0\n");
    folder.put("part-2.csv.gz", "1,2,3,0\n");
    CHECK(read_dataset(folder.path(), {"last", {}, {}}).error().code == "parts_differ");
}

TEST_CASE("a second split does not mix with the first", "[data][write]") {
    const TempFolder folder;
    const auto raw = random_dataset(20, 2, {2}, 3);
    REQUIRE(write_split(raw, {2, 0, {}, 5}, folder.path()));
    const auto again = write_split(raw, {1, 0, {}, 5}, folder.path());
    REQUIRE_FALSE(again);
    CHECK(again.error().kind == ErrorKind::invalid);
    CHECK_FALSE(write_split(raw, {50, 0, {}, 5}, folder / "none"));
    CHECK_FALSE(std::filesystem::exists(folder / "none"));
    CHECK(write_split(raw, {1, 0, {}, 5}, folder / "part-1.csv.gz").error().code == "not_a_folder");
}

}  // namespace causeway
