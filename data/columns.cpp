// A label's name is tried as a header's name first: a column that is really called "last" can be chosen, and the
// word keeps its general meaning where no header claims it. No name is a number (such a line would be a row).
#include "data/columns.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway {
namespace {

std::optional<std::size_t> index_of(std::string_view label, std::span<const std::string> names, std::size_t columns) {
    if (const auto found = std::ranges::find(names, label); found != names.end()) {
        return static_cast<std::size_t>(found - names.begin());
    }
    if (label == "last") {
        return columns - 1;
    }
    std::size_t index = 0;
    const auto [end, code] = std::from_chars(label.data(), label.data() + label.size(), index);
    const bool whole = code == std::errc() && end == label.data() + label.size();
    return whole && index < columns ? std::optional(index) : std::nullopt;
}

std::string hint(std::string_view label, std::span<const std::string> names) {
    const auto nearest = nearest_name(label, names);
    return nearest ? fmt::format("; did you mean '{}'?", *nearest) : "";
}

}  // namespace

Result<std::optional<std::size_t>> find_label_column(std::string_view label, std::span<const std::string> names,
                                                     std::size_t columns, std::string_view file) {
    if (label.empty()) {
        return std::nullopt;
    }
    const auto column = index_of(label, names, columns);
    if (!column) {
        return fail(ErrorKind::invalid, "no_such_column",
                    fmt::format("{}: no column '{}' among {}{} (\"last\", an index from 0, or a header's name)", file,
                                label, columns, hint(label, names)));
    }
    if (columns == 1) {
        return fail(ErrorKind::invalid, "no_features",
                    fmt::format("{}: the label is the only column: nothing is left to learn from", file));
    }
    return column;
}

}  // namespace causeway
