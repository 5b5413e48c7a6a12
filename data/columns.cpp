// A text may be a column's name, its index or "last"; where two of these are different columns, or two columns' names
// look alike, nobody can know which one is meant, and it is refused.
#include "data/columns.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/text.h"
#include "data/names.h"

namespace causeway {
namespace {

constexpr std::size_t longest_shown_column = 80;  // of a wrong name in a message

std::string_view without_sign(std::string_view text) {
    return text.starts_with('#') ? text.substr(1) : text;
}

/// "last", "3" or "#3".
std::optional<std::size_t> index_of(std::string_view text, std::size_t columns) {
    if (text == "last") {
        return columns - 1;
    }
    const auto digits = without_sign(text);
    std::size_t index = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    const bool whole = code == std::errc() && end == digits.data() + digits.size();
    return whole && index < columns ? std::optional(index) : std::nullopt;
}

struct Lookup {
    std::optional<std::size_t> column;
    std::string doubt;  // why it is not one column
};

std::string say_index(std::size_t one, std::size_t other) {
    return fmt::format("write its index, \"#{}\" or \"#{}\"", one, other);
}

Lookup look_up(std::string_view given, std::span<const std::string> names, std::size_t columns) {
    const auto name = normal_name(given);
    const auto index = index_of(name, columns);
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
        return {index, {}};
    }
    const auto column = static_cast<std::size_t>(found - names.begin());
    for (std::size_t other = 0; other < names.size(); ++other) {
        if (other != column && same_but_case(names[other], name)) {
            return {std::nullopt, fmt::format("the columns {} and {} are '{}' and '{}', which are not told apart: {}",
                                              column, other, name.substr(0, longest_shown_column),
                                              names[other].substr(0, longest_shown_column), say_index(column, other))};
        }
    }
    if (index && *index != column) {
        return {
            std::nullopt,
            fmt::format("'{}' is the name of column {} and {} of column {}: {}", name.substr(0, longest_shown_column),
                        column, name == "last" ? "the place" : "the index", *index, say_index(column, *index))};
    }
    return {column, {}};
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
    const auto [column, doubt] = look_up(label, names, columns);
    if (!doubt.empty()) {
        return fail(ErrorKind::invalid, "ambiguous_column", fmt::format("{}: {}", file, doubt));
    }
    if (!column) {
        return fail(ErrorKind::invalid, "no_such_column",
                    fmt::format("{}: no column '{}' among {}{} (\"last\", an index from 0, or a header's name)", file,
                                without_sign(label).substr(0, longest_shown_column), columns, hint(label, names)));
    }
    if (columns == 1) {
        return fail(ErrorKind::invalid, "no_features",
                    fmt::format("{}: the label is the only column: nothing is left to learn from", file));
    }
    return column;
}

Result<std::size_t> find_column(std::string_view name, std::span<const std::string> names, std::size_t columns,
                                std::string_view file) {
    const auto [column, doubt] = look_up(name, names, columns);
    if (column) {
        return *column;
    }
    if (!doubt.empty()) {
        return fail(ErrorKind::invalid, "ambiguous_column", fmt::format("{}: {}", file, doubt));
    }
    return fail(ErrorKind::invalid, "no_such_column",
                fmt::format("{}: no column '{}' among {}{}", file, without_sign(name).substr(0, longest_shown_column),
                            columns, hint(name, names)));
}

namespace {

/// Collects the columns of a list of features, and every fault on the way.
class FeatureList {
public:
    FeatureList(std::optional<std::size_t> label, std::span<const std::string> names, std::size_t columns,
                std::string_view file)
        : label_(label), names_(names), taken_(columns), file_(file) {}

    void add(std::size_t item, std::string_view text) {
        item_ = item;
        // A column that is really called "a..b" is meant before a range.
        const auto whole = look_up(text, names_, taken_.size());
        const auto dots = whole.column || !whole.doubt.empty() ? std::string_view::npos : text.find("..");
        const auto first = find(text.substr(0, dots));
        const auto last = dots == std::string_view::npos ? first : find(text.substr(dots + 2));
        if (!first || !last) {
            return;
        }
        if (*first > *last) {
            return fault("no_such_column", fmt::format("the range {} goes backwards", text));
        }
        for (auto column = *first; column <= *last; ++column) {
            take(column, text);
        }
    }

    [[nodiscard]] std::vector<std::size_t> take_columns() { return std::move(chosen_); }
    [[nodiscard]] std::vector<ColumnFault> take_faults() { return std::move(faults_); }

private:
    std::optional<std::size_t> find(std::string_view name) {
        auto [column, doubt] = look_up(name, names_, taken_.size());
        if (!doubt.empty()) {
            fault("ambiguous_column", doubt);
        } else if (!column) {
            fault("no_such_column",
                  fmt::format("no column '{}' among {}{}", without_sign(name).substr(0, longest_shown_column),
                              taken_.size(), hint(name, names_)));
        }
        return column;
    }

    /// The label inside a range is left out: "first..last" of a table that has it somewhere is what people write.
    void take(std::size_t column, std::string_view text) {
        if (label_ == column) {
            if (text.find("..") == std::string_view::npos) {
                fault("repeated_column", fmt::format("'{}' is the label, and cannot be a feature", text));
            }
        } else if (taken_[column]) {
            fault("repeated_column", fmt::format("column {} is named twice", column_text(column)));
        } else {
            taken_[column] = true;
            chosen_.push_back(column);
        }
    }

    [[nodiscard]] std::string column_text(std::size_t column) const {
        return column < names_.size() ? fmt::format("'{}'", names_[column]) : std::to_string(column);
    }

    void fault(const char* code, const std::string& what) {
        faults_.push_back({item_, {ErrorKind::invalid, code, fmt::format("{}: {}", file_, what)}});
    }

    std::optional<std::size_t> label_;
    std::span<const std::string> names_;
    std::vector<bool> taken_;  // [columns]
    std::string_view file_;
    std::size_t item_ = 0;
    std::vector<std::size_t> chosen_;
    std::vector<ColumnFault> faults_;
};

}  // namespace

tl::expected<ColumnPlan, std::vector<ColumnFault>> plan_columns(std::string_view label,
                                                                std::span<const std::string> features,
                                                                std::span<const std::string> names, std::size_t columns,
                                                                std::string_view file) {
    std::vector<ColumnFault> faults;
    ColumnPlan plan;
    if (auto found = find_label_column(label, names, columns, file)) {
        plan.label = *found;
    } else {
        faults.push_back({std::nullopt, std::move(found).error()});
    }
    FeatureList list(plan.label, names, columns, file);
    for (std::size_t i = 0; i < features.size(); ++i) {
        list.add(i, features[i]);
    }
    plan.features = list.take_columns();
    std::ranges::move(list.take_faults(), std::back_inserter(faults));
    if (!faults.empty()) {
        return tl::unexpected(std::move(faults));
    }
    for (std::size_t column = 0; features.empty() && column < columns; ++column) {
        if (plan.label != column) {
            plan.features.push_back(column);
        }
    }
    return plan;
}

}  // namespace causeway
