// See leftovers.h.
#include "data/leftovers.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/text.h"
#include "data/names.h"

namespace causeway {
namespace {

constexpr std::array<std::string_view, 8> leftover_names{
    "__MACOSX",  "Thumbs.db", "ehthumbs.db", "desktop.ini", "@eaDir", "$RECYCLE.BIN", "System Volume Information",
    "lost+found"};
constexpr std::size_t most_skipped_shown = 3;
constexpr std::size_t longest_skipped_shown = 60;

/// It goes to a terminal.
std::string printable_name(std::string_view name) {
    std::string text(name.substr(0, longest_skipped_shown));
    std::ranges::replace_if(
        text, [](char c) { return c < ' ' || c == 127; }, '?');
    return text;
}

}  // namespace

bool is_leftover(std::string_view name) {
    return name.empty() || name.starts_with('.') || name.starts_with("~$") || name == "Icon\r" ||
           std::ranges::any_of(leftover_names, [&](std::string_view known) { return same_but_case(name, known); });
}

void SkippedEntries::add(std::string_view name) {
    if (++count_ <= most_skipped_shown) {
        first_.push_back(printable_name(name));
    }
}

std::string SkippedEntries::text() const {
    if (count_ == 0) {
        return {};
    }
    return fmt::format("{} {} and {} skipped: {}{}", count_,
                       count_ == 1 ? "entry is no example" : "entries are no examples", count_ == 1 ? "is" : "are",
                       join(first_, ", "), count_ > first_.size() ? ", ..." : "");
}

}  // namespace causeway
