// The weight of an update: an integer in [0, 2^29). What is not one is refused and never becomes 1 (or anything else).
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.h"

namespace causeway {

// Each: errors  invalid `bad_weight`: negative, not an integer, not a number, 2^29 or more.

Result<std::uint32_t> checked_weight(std::int64_t weight);
/// For trainers that report numbers as floating point: NaN, infinity and fractions are refused.
Result<std::uint32_t> checked_weight(double weight);
/// For trainers that report text: decimal digits only.
Result<std::uint32_t> checked_weight(std::string_view weight);

}  // namespace causeway
