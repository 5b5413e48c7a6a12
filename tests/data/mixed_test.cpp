// Tables of numbers and words: columns that become one value per word, and cells that say nothing.
#include <catch2/catch.hpp>

#include "data/csv.h"
#include "data/write.h"
#include "samples.h"

namespace causeway {
namespace {

using Catch::Contains;
using MixedFloats = std::vector<float>;

constexpr std::string_view table = "age,sex,ward,outcome\n40,f,\"a,b\",0\n,m,c,1\n60,NA,c,1\n70,f,c,?\n";

DataOptions words(const std::string& missing) {
    DataOptions options;
    options.label = "outcome";
    options.categories = {{"sex", {"f", "m"}}, {"ward", {"a,b", "c", "d"}}};
    options.missing = *parse_missing(missing);
    return options;
}

Result<Dataset> parse_mixed(std::string_view text, const DataOptions& options) {
    return parse_csv(as_bytes(text), "set.csv", options, {});
}

std::string mixed_refusal(std::string_view text, const DataOptions& options) {
    const auto dataset = parse_mixed(text, options);
    REQUIRE_FALSE(dataset);
    return dataset.error().code + ": " + dataset.error().message;
}

}  // namespace

TEST_CASE("a column of words is one value per word, in the column's place", "[unit][csv]") {
    const auto dataset = parse_mixed("age,sex,ward,outcome\n40,f,\"a,b\",0\n60,m,d,1\n", words("refuse"));
    REQUIRE(dataset);
    CHECK(dataset->shape == std::vector<std::int64_t>{6});
    CHECK(dataset->features == MixedFloats{40, 1, 0, 1, 0, 0, 60, 0, 1, 0, 0, 1});
    CHECK(dataset->labels == std::vector<std::uint32_t>{0, 1});
    auto chosen = words("refuse");
    chosen.file.features = {"ward", "age"};  // in the order of a manifest
    const auto by_manifest = parse_mixed("age,sex,ward,outcome\n40,anything,c,0\n", chosen);
    REQUIRE(by_manifest);
    CHECK(by_manifest->features == MixedFloats{0, 1, 0, 40});
    auto by_index = words("refuse");
    by_index.label = "last";
    by_index.categories = {{"1", {"f", "m"}}, {"2", {"c"}}};
    CHECK(parse_mixed("40,f,c,0\n50,m,c,1\n", by_index)->features == MixedFloats{40, 1, 0, 1, 50, 0, 1, 1});
}

TEST_CASE("a cell that says nothing is refused, left out with its row, or a number", "[unit][csv]") {
    CHECK_THAT(mixed_refusal(table, words("refuse")), Contains("not_a_number") && Contains("row 3, column 1"));
    const auto dropped = parse_mixed(table, words("drop"));
    REQUIRE(dropped);
    CHECK(dropped->size() == 1);
    CHECK(dropped->labels == std::vector<std::uint32_t>{0});
    std::string labelled(table.substr(0, table.rfind("70")));
    const auto filled = parse_mixed(labelled, words("-1"));
    REQUIRE(filled);
    CHECK(filled->features == MixedFloats{40, 1, 0, 1, 0, 0, -1, 0, 1, 0, 1, 0, 60, 0, 0, 0, 1, 0});
    CHECK_THAT(mixed_refusal(table, words("-1")), Contains("missing_value") && Contains("row 5, column 4"));
    CHECK_THAT(mixed_refusal("age,sex,ward,outcome\n,f,c,0\n", words("drop")),
               Contains("no example without a missing value"));
    auto regression = words("drop");
    regression.target = Target::number;
    const auto targets = parse_mixed(table, regression);
    REQUIRE(targets);
    CHECK(targets->targets == MixedFloats{0});
}

TEST_CASE("a word or column that is not there is named, with the nearest", "[unit][csv]") {
    CHECK_THAT(mixed_refusal("age,sex,ward,outcome\n40,f,cc,0\n", words("refuse")),
               Contains("unknown_word") && Contains("row 2, column 3") && Contains("did you mean 'c'?"));
    CHECK_THAT(mixed_refusal("age,sex,ward,outcome\n40,\x1b[2J,c,0\n", words("refuse")), !Contains("\x1b"));
    auto misspelt = words("refuse");
    misspelt.categories[0].column = "sexx";
    CHECK_THAT(mixed_refusal(table, misspelt), Contains("no_such_column") && Contains("did you mean 'sex'?"));
    auto label = words("refuse");
    label.categories = {{"outcome", {"0", "1"}}};
    CHECK_THAT(mixed_refusal(table, label), Contains("repeated_column") && Contains("classes"));
}

TEST_CASE("a written part of a mixed table is read by the same options, value for value", "[property][csv]") {
    const auto whole = parse_mixed(table, words("drop"));
    REQUIRE(whole);
    const auto text = encode_part(*whole);
    const TempFolder folder;
    folder.put("part-1.csv.gz", text);
    for (const auto* path : {"part-1.csv.gz", ""}) {
        const auto part = read_raw_dataset(folder / path, words("drop"));
        REQUIRE(part);
        CHECK(part->features == whole->features);
        CHECK(part->labels == whole->labels);
        CHECK(part->layout.columns ==
              std::vector<std::string>{"age", "sex=f", "sex=m", "ward=a,b", "ward=c", "ward=d", "outcome"});
        CHECK(dataset_digest(*part) == dataset_digest(*whole));
    }
}

}  // namespace causeway
