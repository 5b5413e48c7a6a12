// Numbers as files spell them, and the rules that every format applies to a value: finite features, whole labels.
//
// The machine's locale plays no part: a comma is never a decimal point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace causeway {

/// Where a value stood, for the message: "digits.csv, row 3, column 5". Rows and columns count from 1; in a text file
/// the row is the line. column 0: the row as a whole.
struct Spot {
    std::string_view file;
    std::size_t row = 0;
    std::size_t column = 0;
};
[[nodiscard]] std::string to_text(const Spot& place);

/// The whole text as a number, also "+1.5" and "nan"; nullopt when it is something else.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// A feature, rounded once to f32. errors: corrupt `not_a_number` (also an empty text), `not_finite`
[[nodiscard]] Result<float> parse_feature(std::string_view text, const Spot& place);
/// The same for a value that a binary format stores. errors: corrupt `not_finite`, also when beyond f32
[[nodiscard]] Result<float> to_feature(double value, const Spot& place);

/// A class number. errors: invalid `bad_label`: not a number, not whole, negative, or not below max_classes
[[nodiscard]] Result<std::uint32_t> parse_label(std::string_view text, const Spot& place);
[[nodiscard]] Result<std::uint32_t> to_label(double value, const Spot& place);

}  // namespace causeway
