// The rules for values, kept apart from the formats so that all of them refuse the same things in the same words.
#include "data/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "common/text.h"
#include "data/dataset.h"

namespace causeway {
namespace {

constexpr std::size_t longest_shown_number = 32;  // characters of a wrong value in a message

// from_chars knows no '+', and "+-1" must stay wrong.
std::string_view without_plus(std::string_view text) {
    const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
    return plus ? text.substr(1) : text;
}

/// from_chars knows points only. A number with a comma is spelt with a point in `room`; empty when there is none that
/// could be meant: text with a point, or longer than any number that is written.
std::string_view with_point(std::string_view text, char decimal, std::array<char, 64>& room) {
    const auto comma = decimal == '.' ? std::string_view::npos : text.find(',');
    if (decimal != '.' && (text.find('.') != std::string_view::npos || text.size() > room.size())) {
        return {};
    }
    if (comma == std::string_view::npos) {
        return text;
    }
    std::ranges::copy(text, room.begin());
    room[comma] = '.';
    return {room.data(), text.size()};
}

template <class T>
std::optional<T> parse_whole(std::string_view text, char decimal = '.') {
    std::array<char, 64> room;
    text = with_point(text, decimal, room);
    T value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

// What a file put there, short and without control characters: it goes to a terminal.
std::string shown(std::string_view text) {
    std::string result;
    for (const char c : text.substr(0, longest_shown_number)) {
        result += c >= ' ' && c < 127 ? c : '?';
    }
    return text.size() > longest_shown_number ? result + "..." : result;
}

tl::unexpected<Error> not_finite(const Spot& place) {
    return fail(ErrorKind::corrupt, "not_finite",
                fmt::format("{}: the value is NaN, infinite or too large for a 32-bit float", to_text(place)));
}

}  // namespace

std::string to_text(const Spot& place) {
    auto text = fmt::format("{}, row {}", place.file, place.row);
    if (place.line != 0 && place.line != place.row) {
        text += fmt::format(" (line {})", place.line);
    }
    return place.column == 0 ? text : text + fmt::format(", column {}", place.column);
}

std::optional<double> parse_number(std::string_view text, char decimal) {
    return parse_whole<double>(without_plus(trim(text)), decimal);
}

bool says_nothing(std::string_view cell) {
    constexpr std::array<std::string_view, 8> nothings{"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"};
    return std::ranges::find(nothings, cell) != nothings.end();
}

Result<float> parse_feature(std::string_view text, const Spot& place, char decimal) {
    const auto digits = without_plus(trim(text));
    // Straight to float: by way of double a value could be rounded twice, and a written part must read back exactly.
    if (const auto value = parse_whole<float>(digits, decimal)) {
        return std::isfinite(*value) ? Result<float>(*value) : not_finite(place);
    }
    // Out of float's range (tiny values become zero) or not a number at all.
    if (const auto value = parse_whole<double>(digits, decimal)) {
        return to_feature(*value, place);
    }
    return fail(ErrorKind::corrupt, "not_a_number",
                digits.empty() ? fmt::format("{}: the value is missing", to_text(place))
                               : fmt::format("{}: '{}' is not a number", to_text(place), shown(digits)));
}

Result<float> to_feature(double value, const Spot& place) {
    const auto feature = static_cast<float>(value);
    return std::isfinite(feature) ? Result<float>(feature) : not_finite(place);
}

Result<std::uint32_t> parse_label(std::string_view text, const Spot& place, char decimal) {
    const auto value = parse_number(text, decimal);
    if (!value) {
        return fail(ErrorKind::invalid, "bad_label",
                    fmt::format("{}: the label '{}' is not a class number: write classes as 0, 1, 2, ...",
                                to_text(place), shown(trim(text))));
    }
    return to_label(*value, place);
}

Result<std::uint32_t> to_label(double value, const Spot& place) {
    if (!(value >= 0 && value < max_classes) || value != std::floor(value)) {
        return fail(
            ErrorKind::invalid, "bad_label",
            fmt::format("{}: the label {} is not a whole number from 0 to {}", to_text(place), value, max_classes - 1));
    }
    return static_cast<std::uint32_t>(value);
}

}  // namespace causeway
