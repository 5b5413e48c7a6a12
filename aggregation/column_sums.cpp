// Six sums a column: of values, of the upper and of the lower halves of squares, each for small and for large ones.
// Mean and variance are computed with twice the digits of a double: n * squares - sum^2 loses as many as the mean is
// larger than the deviation, and the sums have them all. Source of the arithmetic: Dekker 1971; Knuth, TAOCP 2, 4.2.2.
#include "aggregation/column_sums.h"

#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/exact.h"

namespace causeway {
namespace {

constexpr std::size_t kinds = 6;  // value, square's upper half, lower half; the same in units of 2^60
constexpr std::size_t large = 3;  // where those begin
constexpr float least_large = 0x1p21f;  // from here on the last bit is 2^-2, which 2^-60 brings to the resolution
constexpr float to_large = 0x1p-60f;
constexpr std::uint32_t additions_of_weight_limit = 64;  // so many times 2^29 values of a column

/// high + low, |low| at most half a unit of high's last place.
struct Double2 {
    double high = 0;
    double low = 0;
};

Double2 two_sum(double a, double b) {
    const double sum = a + b;
    const double of_b = sum - a;
    return {sum, (a - (sum - of_b)) + (b - of_b)};
}

Double2 add(Double2 a, Double2 b) {
    const auto high = two_sum(a.high, b.high);
    return two_sum(high.high, high.low + a.low + b.low);
}

Double2 multiply(Double2 a, Double2 b) {
    const double product = a.high * b.high;
    const double rest = std::fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high);
    return two_sum(product, rest);
}

Double2 divide(Double2 a, double by) {
    const double first = a.high / by;
    const auto rest = add(a, multiply({-first, 0}, {by, 0}));
    return two_sum(first, rest.high / by);
}

/// Both limbs are below 2^63; each is two numbers that a double holds whole.
Double2 value_of(const ExactTotal& total, double unit) {
    const auto whole = [](std::int64_t limb) {
        const auto low = static_cast<double>(limb & 0xffffffff);
        return two_sum(static_cast<double>(limb - (limb & 0xffffffff)), low);
    };
    const auto scaled = [](Double2 a, double by) { return Double2{a.high * by, a.low * by}; };
    return scaled(add(scaled(whole(total.high), 0x1p-10), scaled(whole(total.low), 0x1p-62)), unit);
}

/// As the text will say it: decided on the f32, so that what is printed is what was judged.
float as_printed(double value) {
    return static_cast<float>(value);
}

}  // namespace

ColumnSums::ColumnSums(std::size_t columns, std::uint32_t members)
    : columns_(columns),
      limit_(exact_sum_limit / std::max(members, 1u)),
      sum_(kinds * columns),
      magnitudes_(kinds * columns) {}

Status ColumnSums::add(std::span<const float> values) {
    ASSERT(columns_ > 0 && values.size() % columns_ == 0);
    const auto all = RangeSet::all(sum_.element_count());
    std::vector<float> row(sum_.element_count());
    for (std::size_t first = 0; first < values.size(); first += columns_) {
        std::ranges::fill(row, 0.0f);
        for (std::size_t column = 0; column < columns_; ++column) {
            const float value = values[first + column];
            if (!(std::abs(value) < largest_summed_value)) {
                return fail(ErrorKind::invalid, "out_of_range",
                            fmt::format("column {}: {} is too large to be summed; bring the values into a smaller "
                                        "range with data.scale",
                                        column, value));
            }
            const double square = static_cast<double>(value) * static_cast<double>(value);  // 48 bits: exact
            const auto upper = static_cast<float>(square);
            const std::array parts{value, upper, static_cast<float>(square - static_cast<double>(upper))};
            for (std::size_t kind = 0; kind < parts.size(); ++kind) {
                const bool is_large = std::abs(parts[kind]) >= least_large;
                const auto at = (kind + (is_large ? large : 0)) * columns_ + column;
                row[at] = is_large ? parts[kind] * to_large : parts[kind];
                magnitudes_[at] += static_cast<double>(std::abs(row[at]));
                if (magnitudes_[at] >= limit_) {
                    return fail(ErrorKind::invalid, "out_of_range",
                                fmt::format("column {}: its values add up to more than the exact sum of a cohort "
                                            "holds; bring them into a smaller range with data.scale",
                                            column));
                }
            }
        }
        sum_.add(all, row, 1);
    }
    return {};
}

void ColumnSums::merge(const ColumnSums& other) {
    sum_.merge(other.sum_);
}

std::vector<ColumnStatistics> ColumnSums::statistics() const {
    const auto count = static_cast<double>(this->count());
    ASSERT(count > 0);
    const auto total = [&](std::size_t kind, std::size_t column) {
        return causeway::add(value_of(sum_.total_at(kind * columns_ + column), 1),
                             value_of(sum_.total_at((kind + large) * columns_ + column), 0x1p60));
    };
    std::vector<ColumnStatistics> columns;
    for (std::size_t column = 0; column < columns_; ++column) {
        const auto mean = divide(total(0, column), count);
        const auto squares = divide(causeway::add(total(1, column), total(2, column)), count);
        const auto square = multiply(mean, mean);
        const auto variance = causeway::add(squares, {-square.high, -square.low});
        const double deviation = std::sqrt(std::max(variance.high, 0.0));
        const bool varies = static_cast<double>(as_printed(deviation)) > least_deviation;
        columns.push_back({mean.high, varies ? deviation : 1});
    }
    return columns;
}

/// A member may hold more values of a column than an update may have weight: it is judged as so many members.
Result<ColumnSums> ColumnSums::from_partial(ByteView bytes, std::size_t columns, std::uint32_t members) {
    ColumnSums sums(columns, members);
    const PartialLimits limits{.element_count = kinds * columns,
                               .cohort = additions_of_weight_limit * std::max(members, 1u),
                               .members = additions_of_weight_limit,
                               .segments = 1};
    TRY_ASSIGN(sums.sum_, ExactSum::from_partial(bytes, limits));
    if (sums.count() == 0) {
        return fail(ErrorKind::corrupt, "bad_weight", "the sums of the columns are of no values");
    }
    return sums;
}

std::string to_text(std::span<const ColumnStatistics> columns) {
    std::vector<float> means;
    std::vector<float> deviations;
    for (const auto& column : columns) {
        means.push_back(as_printed(column.mean));
        deviations.push_back(as_printed(column.deviation));
    }
    return fmt::format("{} {}", fmt::join(means, ","), fmt::join(deviations, ","));
}

}  // namespace causeway
