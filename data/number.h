// Numbers as files spell them, and the rules that every format applies to a value: finite features, whole labels.
//
// The machine's locale plays no part: the decimal mark is a point, or a comma where a table has commas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace causeway {

/// Where a value stood, for the message: "digits.csv, row 3, column 5". Rows and columns count from 1; in a text file a
/// row is a record, header and remarks included, and begins in `line`, which is named where it is another number (a
/// cell before it has line breaks). column 0: the row as a whole.
struct Spot {
    std::string_view file;
    std::size_t row = 0;
    std::size_t column = 0;
    std::size_t line = 0;  // from 1; 0: no text file
};
[[nodiscard]] std::string to_text(const Spot& place);

/// The whole text as a number, also "+1.5" and "nan"; nullopt when it is something else. With ',' as decimal mark a
/// point is in no number.
[[nodiscard]] std::optional<double> parse_number(std::string_view text, char decimal = '.');

/// What spreadsheets and data frames write where there is nothing: "", NA, N/A, NaN, nan, null, NULL, ?
[[nodiscard]] bool says_nothing(std::string_view cell);

/// A feature, rounded once to f32. errors: corrupt `not_a_number` (also an empty text), `not_finite`
[[nodiscard]] Result<float> parse_feature(std::string_view text, const Spot& place, char decimal = '.');
/// The same for a value that a binary format stores. errors: corrupt `not_finite`, also when beyond f32
[[nodiscard]] Result<float> to_feature(double value, const Spot& place);

/// A class number. errors: invalid `bad_label`: not a number, not whole, negative, or not below max_classes
[[nodiscard]] Result<std::uint32_t> parse_label(std::string_view text, const Spot& place, char decimal = '.');
[[nodiscard]] Result<std::uint32_t> to_label(double value, const Spot& place);

}  // namespace causeway
