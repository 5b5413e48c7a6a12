// Counts, sums and sums of squares of the columns of a table, or of an image's channels, without any rounding.
//
// From them follow the mean and deviation over all nodes' examples as if one machine held them all, whatever the order
// and grouping in which the sums come. Each value and its square (as two floats, which hold it whole) go into an exact
// sum; what is too large for the sum's range goes into a second one in units of 2^60, which together reach 2^40 with a
// resolution of 2^-62. Nothing of single examples is left in a sum, but of very few examples it tells nearly all.
// Pure, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aggregation/exact_sum.h"

namespace causeway {

constexpr std::size_t most_normalised_columns = 1024;  // the numbers travel as text in every assignment
constexpr double largest_summed_value = 0x1p40;
/// A deviation is above this; a column that varies less is only centred.
constexpr double least_deviation = 1e-6;

/// What a column's values are brought to 0 and 1 by.
struct ColumnStatistics {
    double mean = 0;
    double deviation = 1;
};

/// threads  one sum is owned by one thread at a time
class ColumnSums {
public:
    /// `members`: at most so many sums will be merged, which bounds the values of each.
    ColumnSums(std::size_t columns, std::uint32_t members);

    /// Adds examples side by side, columns last.
    ///
    /// shapes   values f32[N, columns], finite
    /// errors   invalid `out_of_range`: a value, or what the values of a column add up to, is too large; names it
    [[nodiscard]] Status add(std::span<const float> values);
    /// Adds all that another one holds. Both have as many columns, and there are no more than `members`.
    void merge(const ColumnSums& other);

    /// So many values of each column are in it.
    [[nodiscard]] std::uint64_t count() const { return sum_.weight_at(0); }
    /// Of each column. Something was added.
    [[nodiscard]] std::vector<ColumnStatistics> statistics() const;

    /// The bytes of ExactSum::partial over 6 sums a column: equal values give equal bytes.
    [[nodiscard]] Bytes partial() { return sum_.partial(); }
    /// errors   corrupt: as ExactSum::from_partial, or nothing is in it. Total.
    static Result<ColumnSums> from_partial(ByteView bytes, std::size_t columns, std::uint32_t members);

private:
    std::size_t columns_;
    double limit_;  // of the magnitudes of one sum
    ExactSum sum_;
    std::vector<double> magnitudes_;  // of each sum, what was added here: an upper bound, rounding aside
};

/// "MEAN,MEAN DEVIATION,DEVIATION": as the numbers of data/augment.h's `normalise`, each with the fewest digits that
/// give the same f32.
[[nodiscard]] std::string to_text(std::span<const ColumnStatistics> columns);

}  // namespace causeway
