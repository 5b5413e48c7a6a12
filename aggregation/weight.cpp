// Three spellings of one check. Text goes through from_chars, which takes no blanks, signs, points or "nan". Thread:
// any; reentrant.
#include "aggregation/weight.h"

#include <charconv>
#include <cmath>
#include <string>

#include "kernels/exact.h"

namespace causeway {
namespace {

tl::unexpected<Error> bad_weight(std::string_view weight) {
    return fail(ErrorKind::invalid, "bad_weight",
                "weight " + std::string(weight.substr(0, 40)) + " is not an integer from 0 to 536870911");
}

}  // namespace

Result<std::uint32_t> checked_weight(std::int64_t weight) {
    if (weight < 0 || weight >= exact_weight_limit) {
        return bad_weight(std::to_string(weight));
    }
    return static_cast<std::uint32_t>(weight);
}

Result<std::uint32_t> checked_weight(double weight) {
    // The comparison is false for NaN. Text of a double: to_string would print 1e300 with 300 digits.
    if (!(weight >= 0 && weight < static_cast<double>(exact_weight_limit)) || weight != std::floor(weight)) {
        char text[32];
        const auto end = std::to_chars(text, text + sizeof text, weight).ptr;
        return bad_weight({text, static_cast<std::size_t>(end - text)});
    }
    return static_cast<std::uint32_t>(weight);
}

Result<std::uint32_t> checked_weight(std::string_view weight) {
    std::int64_t value = 0;
    const auto end = weight.data() + weight.size();
    const auto [stopped, error] = std::from_chars(weight.data(), end, value);
    if (error != std::errc{} || stopped != end) {
        return bad_weight("'" + std::string(weight.substr(0, 40)) + "'");
    }
    return checked_weight(value);
}

}  // namespace causeway
