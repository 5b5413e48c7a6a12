// Which columns of a table are the label and the features, resolved once, before any value is read.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "common/result.h"

namespace causeway {

/// "last", the name of a column, or an index from 0, which "#3" always is; "" is no column. Names of a header
/// are normal names (data/names.h); `label` is brought to that form.
///
/// errors  invalid `no_such_column`, with the nearest name; `ambiguous_column`: two columns have the name, or differ in
///         case alone, or the text is one column's name and another's index; `no_features` when the label is the only
///         column
[[nodiscard]] Result<std::optional<std::size_t>> find_label_column(std::string_view label,
                                                                   std::span<const std::string> names,
                                                                   std::size_t columns, std::string_view file);

/// A column by its name or index. errors: invalid `no_such_column`, with the nearest name; `ambiguous_column`
[[nodiscard]] Result<std::size_t> find_column(std::string_view name, std::span<const std::string> names,
                                              std::size_t columns, std::string_view file);

/// What each column of a table is for.
struct ColumnPlan {
    std::optional<std::size_t> label;
    std::vector<std::size_t> features;  // columns, in the order of an example's values; none twice, never the label
};

/// What is wrong with a choice of columns. `feature` is the item of the list that it is about; empty: the label.
struct ColumnFault {
    std::optional<std::size_t> feature;
    Error error;
};

/// Features are names, indices from 0, or ranges "first..last" of either, both ends included; none: all but the label.
///
/// errors  all that is wrong: invalid `no_such_column` with the nearest name, `ambiguous_column`, `repeated_column`,
///         `no_features`
[[nodiscard]] tl::expected<ColumnPlan, std::vector<ColumnFault>> plan_columns(
    std::string_view label, std::span<const std::string> features, std::span<const std::string> names,
    std::size_t columns, std::string_view file);

}  // namespace causeway
