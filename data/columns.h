// Which column of a table is the label, resolved once, before any value is read.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/result.h"

namespace causeway {

/// "last", the name of a column (a header's names go first), or an index from 0; "" is no column.
///
/// errors  invalid `no_such_column`, with the nearest name; `no_features` when the label is the only column
[[nodiscard]] Result<std::optional<std::size_t>> find_label_column(std::string_view label,
                                                                   std::span<const std::string> names,
                                                                   std::size_t columns, std::string_view file);

}  // namespace causeway
