// Sums of columns: what follows from them is what one machine with all examples finds, in every order and grouping.
#include "aggregation/column_sums.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <catch2/catch.hpp>

namespace causeway {
namespace {

__extension__ using Wide = __int128;  // sums of whole numbers have no rounding in it

struct Column {
    std::vector<std::int64_t> numbers;  // values are these times `unit`
    double unit = 1;
};

/// (n * sum of squares - sum^2) / n^2 in whole numbers, rounded at the end.
ColumnStatistics by_whole_numbers(const Column& column) {
    Wide sum = 0;
    Wide squares = 0;
    for (const auto number : column.numbers) {
        sum += number;
        squares += Wide{number} * number;
    }
    const auto count = static_cast<long double>(column.numbers.size());
    const Wide spread = static_cast<Wide>(column.numbers.size()) * squares - sum * sum;
    return {static_cast<double>(static_cast<long double>(sum) / count * column.unit),
            static_cast<double>(std::sqrt(static_cast<long double>(spread)) / count * column.unit)};
}

std::vector<float> table_of(const std::vector<Column>& columns, std::size_t first, std::size_t count) {
    std::vector<float> values;
    for (std::size_t row = first; row < first + count; ++row) {
        for (const auto& column : columns) {
            values.push_back(static_cast<float>(static_cast<double>(column.numbers[row]) * column.unit));
        }
    }
    return values;
}

/// 24 bits each: an f32 holds them whole.
std::vector<Column> random_columns(std::size_t rows) {
    std::mt19937 random(7);
    std::vector<Column> columns{{{}, 0x1p-30}, {{}, 1}, {{}, 0x1p16}, {{}, 1}, {{}, 0x1p-8}};
    for (std::size_t row = 0; row < rows; ++row) {
        const auto number = [&](std::int64_t most) { return static_cast<std::int64_t>(random() % (2 * most)) - most; };
        columns[0].numbers.push_back(number(1 << 22));
        columns[1].numbers.push_back(number(1 << 23));
        columns[2].numbers.push_back(number(1 << 23));
        columns[3].numbers.push_back((1 << 23) + number(2));  // a mean millions of times the deviation
        columns[4].numbers.push_back(77);
    }
    return columns;
}

}  // namespace

TEST_CASE("mean and deviation are those of whole numbers, from tiny to huge values", "[column_sums]") {
    const auto columns = random_columns(997);
    ColumnSums sums(columns.size(), 4);
    REQUIRE(sums.add(table_of(columns, 0, 997)));
    CHECK(sums.count() == 997);
    const auto found = sums.statistics();
    REQUIRE(found.size() == columns.size());
    for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
        INFO("column " << i);
        const auto expected = by_whole_numbers(columns[i]);
        CHECK(found[i].mean == Approx(expected.mean).epsilon(1e-15));
        CHECK(found[i].deviation == Approx(expected.deviation).epsilon(1e-15));
    }
    CHECK(found[4].mean == 77.0 / 256);
    CHECK(found[4].deviation == 1);  // constant: only centred
}

TEST_CASE("the sums of parts are the sum of all, byte for byte, in every order and grouping", "[column_sums]") {
    const auto columns = random_columns(60);
    ColumnSums whole(columns.size(), 6);
    REQUIRE(whole.add(table_of(columns, 0, 60)));
    const auto expected = whole.partial();
    std::vector<std::pair<std::size_t, std::size_t>> parts{{0, 1}, {1, 9}, {10, 20}, {30, 30}};
    for (int order = 0; order < 24; ++order) {
        ColumnSums star(columns.size(), 6);
        ColumnSums left(columns.size(), 6);
        ColumnSums right(columns.size(), 6);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            ColumnSums part(columns.size(), 6);
            REQUIRE(part.add(table_of(columns, parts[i].first, parts[i].second)));
            const auto received = ColumnSums::from_partial(part.partial(), columns.size(), 6);
            REQUIRE(received);
            star.merge(*received);
            (i % 2 == 0 ? left : right).merge(*received);
        }
        right.merge(left);
        REQUIRE(star.partial() == expected);
        REQUIRE(right.partial() == expected);
        CHECK(to_text(star.statistics()) == to_text(whole.statistics()));
        std::next_permutation(parts.begin(), parts.end());
    }
}

TEST_CASE("values that the sum cannot hold are refused with their column", "[column_sums]") {
    ColumnSums sums(2, 1000);
    for (const float value : {0x1p40f, -0x1p41f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
        const auto added = sums.add(std::vector<float>{1, value});
        REQUIRE_FALSE(added);
        CHECK(added.error().code == "out_of_range");
        CHECK_THAT(added.error().message, Catch::Contains("column 1") && Catch::Contains("data.scale"));
    }
    // 2^42 for each of a thousand members; 2^20 squares of 2^24 are more.
    const std::vector<float> many(2 << 20, 0x1p10f);
    const auto added = ColumnSums(2, 1 << 14).add(many);
    REQUIRE_FALSE(added);
    CHECK(added.error().code == "out_of_range");
    CHECK(ColumnSums(2, 1).add(many));
}

TEST_CASE("bytes that no sum of columns has are refused", "[column_sums]") {
    ColumnSums sums(3, 5);
    CHECK(ColumnSums::from_partial(sums.partial(), 3, 5).error().code == "bad_weight");
    REQUIRE(sums.add(std::vector<float>{1, 2, 3, 4, 5, 6}));
    const auto good = sums.partial();
    REQUIRE(ColumnSums::from_partial(good, 3, 5));
    CHECK_FALSE(ColumnSums::from_partial(good, 4, 5));
    for (std::size_t size = 0; size < good.size(); ++size) {
        REQUIRE_FALSE(ColumnSums::from_partial(ByteView(good).first(size), 3, 5));
    }
    std::mt19937 random(3);
    for (int i = 0; i < 2000; ++i) {
        auto bytes = good;
        bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
        if (const auto read = ColumnSums::from_partial(bytes, 3, 5)) {
            for (const auto& column : read->statistics()) {  // whatever they say, numbers come of it
                REQUIRE(std::isfinite(column.mean));
                REQUIRE(column.deviation > least_deviation);
            }
        }
    }
}

TEST_CASE("statistics are written with the digits that an f32 needs", "[column_sums]") {
    const std::vector<ColumnStatistics> columns{{0.1, 0.25}, {-1e9, 3}};
    CHECK(to_text(columns) == "0.1,-1000000000 0.25,3");
}

}  // namespace causeway
