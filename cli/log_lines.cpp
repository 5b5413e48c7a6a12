// See log_lines.h.
#include "cli/log_lines.h"

#include <algorithm>

#include <fmt/format.h>

namespace causeway::cli {

std::string details_text(const Json& entry, std::initializer_list<std::string_view> left_out) {
    std::string text;
    for (const auto& [key, value] : entry.fields()) {
        if (std::ranges::find(left_out, key) == left_out.end() && !value.is_null()) {
            text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value.is_text() ? value.text() : value.dump());
        }
    }
    return text;
}

}  // namespace causeway::cli
