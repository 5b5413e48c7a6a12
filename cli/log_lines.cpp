// See log_lines.h.
#include "cli/log_lines.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/printable.h"

namespace causeway::cli {
namespace {

constexpr std::size_t digest_digits = 64;
constexpr std::size_t shown_digits = 12;  // of a digest: enough to tell two apart; --json has all

std::string value_text(const Json& value) {
    if (!value.is_text()) {
        const auto whole = value.dump();
        return whole.find('.') == std::string::npos ? whole : fmt::format("{:.4g}", value.number());
    }
    const auto text = value.text();
    const bool digest = text.size() == digest_digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
    return digest ? text.substr(0, shown_digits) + "~" : printable(text, Lines::one);
}

}  // namespace

std::string details_text(const Json& entry, std::initializer_list<std::string_view> left_out) {
    std::string text;
    for (const auto& [key, value] : entry.fields()) {
        if (std::ranges::find(left_out, key) == left_out.end() && !value.is_null()) {
            text += fmt::format("{}{}={}", text.empty() ? "" : " ", printable(key, Lines::one), value_text(value));
        }
    }
    return text;
}

}  // namespace causeway::cli
