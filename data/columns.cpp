// A label's name is tried as a header's name first: a column that is really called "last" can be chosen, and the
// word keeps its general meaning where no header claims it. No name is a number (such a line would be a row).
#include "data/columns.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway {
namespace {

constexpr std::size_t longest_shown_column = 80;  // of a wrong name in a message

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
                                label.substr(0, longest_shown_column), columns, hint(label, names)));
    }
    if (columns == 1) {
        return fail(ErrorKind::invalid, "no_features",
                    fmt::format("{}: the label is the only column: nothing is left to learn from", file));
    }
    return column;
}

Result<std::size_t> find_column(std::string_view name, std::span<const std::string> names, std::size_t columns,
                                std::string_view file) {
    if (const auto column = index_of(name, names, columns)) {
        return *column;
    }
    return fail(ErrorKind::invalid, "no_such_column",
                fmt::format("{}: no column '{}' among {}{}", file, name.substr(0, longest_shown_column), columns,
                            hint(name, names)));
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
        const auto dots = index_of(text, names_, taken_.size()) ? std::string_view::npos : text.find("..");
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
        const auto column = index_of(trim(name), names_, taken_.size());
        if (!column) {
            fault("no_such_column", fmt::format("no column '{}' among {}{}", name.substr(0, longest_shown_column),
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
