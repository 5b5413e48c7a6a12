// The CSV parser: one pass over the records, every value converted where it stands.
//
// Why not a table of text first: a row costs no allocation, the place of a wrong value is known when it is met, and
// what a hostile file can make us hold is bounded by its size (four bytes of features for at least two of text).
// The first record decides how many columns there are, and which of them is the label.
#include "data/csv.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/text.h"
#include "data/columns.h"
#include "data/csv_records.h"
#include "data/names.h"
#include "data/number.h"
#include "data/text_stream.h"

namespace causeway {
namespace {

constexpr std::size_t ignored = static_cast<std::size_t>(-1);
constexpr std::size_t longest_shown_name = 80;   // of a wrong label
constexpr std::size_t rows_before_guess = 4096;  // enough to tell how long a row is

/// Errors that another form of the table might mend say how it was read.
bool is_about_form(const Error& error) {
    constexpr std::array<std::string_view, 8> codes{"ragged",           "not_a_number", "bad_label", "no_such_column",
                                                    "ambiguous_column", "no_features",  "bad_quote", "unknown_word"};
    return std::ranges::find(codes, error.code) != codes.end();
}

/// Names by which the options ask for columns.
std::vector<std::string> asked_names(const DataOptions& options) {
    std::vector<std::string> names;
    const auto add = [&](std::string_view name) {
        if (!name.empty() && name != "last") {
            names.push_back(normal_name(name));
        }
    };
    add(options.label);
    for (const auto& feature : options.file.features) {
        const auto dots = feature.find("..");
        add(feature);
        if (dots != std::string::npos) {
            add(std::string_view(feature).substr(0, dots));
            add(std::string_view(feature).substr(dots + 2));
        }
    }
    for (const auto& category : options.categories) {
        add(category.column);
    }
    return names;
}

// One use: parse() takes the text apart and moves its findings out.
class CsvParser {
public:
    CsvParser(CsvRecords records, std::string_view file, const DataOptions& options, const ReadLimits& limits)
        : records_(std::move(records)), file_(file), options_(options), limits_(limits) {}

    Result<CsvColumns> columns() {
        TRY(begin());
        return CsvColumns{std::move(layout_.columns), columns_};
    }

    Result<Dataset> parse() {
        return parse_all().map_error([this](Error error) {
            if (is_about_form(error)) {
                error.message += fmt::format(" (the table is read as {})", to_text(records_.form()));
            }
            return error;
        });
    }

private:
    Result<Dataset> parse_all() {
        TRY(begin());
        TRY(choose_columns());
        if (!records_.form().header) {
            TRY(read_row());  // the first record was a row
        }
        for (;;) {
            TRY_ASSIGN(const bool more, records_.next());
            if (!more) {
                return finish();
            }
            make_room();
            TRY(read_row());
        }
    }

    /// Stands behind the first record, which decides how many columns there are and whether they have names.
    Status begin() {
        const auto names = asked_names(options_);
        TRY(records_.begin({options_.form, names}));
        TRY_ASSIGN(const bool first, records_.next());
        if (!first) {
            return fail(ErrorKind::corrupt, "empty", fmt::format("{}: there is no example in the file", file_));
        }
        columns_ = records_.cells().size();
        if (columns_ > limits_.columns) {
            return fail(ErrorKind::overloaded, "too_many_columns",
                        fmt::format("{}: more than {} columns", to_text(records_.spot()), limits_.columns));
        }
        for (const auto& cell : records_.cells()) {
            if (records_.form().header) {
                layout_.columns.push_back(normal_name(text_of(cell)));
            }
        }
        return {};
    }

    [[nodiscard]] std::string text_of(const Cell& cell) const { return cell_text(cell, records_.form().marks.quote); }

    /// Room for all examples at once, as far as the share of the file that is read tells: growing by doubling would
    /// hold the examples twice.
    void make_room() {
        if (features_.size() + width_ <= features_.capacity() || features_.size() < rows_before_guess * width_) {
            return;
        }
        const double all = static_cast<double>(features_.size()) / records_.progress();
        const auto room = static_cast<std::uint64_t>(all * 1.02) + rows_before_guess * width_;
        features_.reserve(std::min(room, limits_.values + width_));
    }

    Status choose_columns() {
        const auto noted = records_.note().label ? fmt::format("#{}", *records_.note().label) : "";
        const auto& label = options_.label.empty() ? noted : options_.label;
        auto plan = plan_columns(label, options_.file.features, layout_.columns, columns_, file_);
        if (!plan) {
            return fail(std::move(plan.error().front().error));
        }
        label_column_ = plan->label;
        words_of_.assign(columns_, nullptr);
        TRY(find_categories());
        place_of_.assign(columns_, ignored);
        for (const auto column : plan->features) {
            place_of_[column] = width_;
            width_ += words_of_[column] == nullptr ? 1 : words_of_[column]->values.size();
        }
        if (width_ > limits_.columns) {
            return fail(ErrorKind::overloaded, "too_many_columns",
                        fmt::format("{}: more than {} values an example", file_, limits_.columns));
        }
        choose_layout(*plan);
        return {};
    }

    /// A written part has its words as columns already.
    Status find_categories() {
        for (const auto& category : options_.categories) {
            if (records_.note().expanded) {
                break;
            }
            TRY_ASSIGN(const auto column, find_column(category.column, layout_.columns, columns_, file_));
            if (column == label_column_) {
                return fail(ErrorKind::invalid, "repeated_column",
                            fmt::format("{}: '{}' is the label, whose words are classes", file_, category.column));
            }
            if (words_of_[column] != nullptr) {
                return fail(ErrorKind::invalid, "repeated_column",
                            fmt::format("{}: '{}' and '{}' of categories are one column", file_,
                                        words_of_[column]->column, category.column));
            }
            words_of_[column] = &category;
        }
        return {};
    }

    /// A part is written with what was chosen: all columns where they stood, or the chosen ones and then the label.
    void choose_layout(const ColumnPlan& plan) {
        layout_.label_column = label_column_.value_or(0);
        layout_.expanded = records_.note().expanded;
        const bool has_words = std::ranges::any_of(words_of_, [](const Category* words) { return words != nullptr; });
        if (options_.file.features.empty() && !has_words) {
            return;
        }
        RowLayout chosen{.columns = {}, .label_column = width_, .expanded = has_words || records_.note().expanded};
        if (!layout_.columns.empty()) {
            for (const auto column : plan.features) {
                append_names(column, chosen.columns);
            }
            if (label_column_) {
                chosen.columns.push_back(layout_.columns[*label_column_]);
            }
        }
        layout_ = std::move(chosen);
    }

    /// "sex=f", "sex=m" for a column of words.
    void append_names(std::size_t column, std::vector<std::string>& names) const {
        if (words_of_[column] == nullptr) {
            names.push_back(layout_.columns[column]);
            return;
        }
        for (const auto& word : words_of_[column]->values) {
            names.push_back(fmt::format("{}={}", layout_.columns[column], word));
        }
    }

    Status read_row() {
        const auto& cells = records_.cells();
        const std::size_t before = features_.size();
        const std::size_t labels = labels_.size(), targets = targets_.size();
        incomplete_ = false;
        features_.resize(before + width_);
        for (std::size_t column = 0; column < std::min(cells.size(), columns_); ++column) {
            TRY(read_cell(cells[column], column));
        }
        if (cells.size() != columns_) {
            return fail(ErrorKind::corrupt, "ragged",
                        fmt::format("{}: {} values, but the rows before have {}", to_text(records_.spot()),
                                    cells.size(), columns_));
        }
        if (incomplete_) {  // and the rule says that it is left out
            features_.resize(before);
            labels_.resize(labels);
            targets_.resize(targets);
        }
        if (features_.size() > limits_.values) {
            return fail(ErrorKind::overloaded, "too_large",
                        fmt::format("{}: more than {} values", to_text(records_.spot()), limits_.values));
        }
        return {};
    }

    Status read_cell(const Cell& cell, std::size_t column) {
        const Spot place = records_.spot(column + 1);
        const bool used = column == label_column_ || place_of_[column] != ignored;
        if (used && options_.missing.kind != MissingRule::Kind::refuse && says_nothing(cell.text)) {
            return read_missing(column, place);
        }
        if (column == label_column_) {
            return options_.target == Target::number ? read_target(cell.text, place) : read_label(cell, place);
        }
        if (!used) {
            return {};
        }
        const std::size_t at = features_.size() - width_ + place_of_[column];
        if (words_of_[column] != nullptr) {
            return read_word(cell, *words_of_[column], at, place);
        }
        TRY_ASSIGN(features_[at], parse_feature(cell.text, place, records_.form().decimal));
        return {};
    }

    Status read_missing(std::size_t column, const Spot& place) {
        if (options_.missing.kind == MissingRule::Kind::drop) {
            incomplete_ = true;
            return {};
        }
        if (column == label_column_) {
            return fail(ErrorKind::corrupt, "missing_value",
                        fmt::format("{}: the label is missing; a number cannot stand for it: drop such rows with "
                                    "missing = \"drop\"",
                                    to_text(place)));
        }
        if (words_of_[column] == nullptr) {  // of words all stay 0
            features_[features_.size() - width_ + place_of_[column]] = static_cast<float>(options_.missing.number);
        }
        return {};
    }

    Status read_word(const Cell& cell, const Category& words, std::size_t at, const Spot& place) {
        const auto name = normal_name(text_of(cell));
        const auto found = std::ranges::find(words.values, name);
        if (found == words.values.end()) {
            const auto nearest = nearest_name(name.substr(0, longest_shown_name), words.values);
            return fail(ErrorKind::corrupt, "unknown_word",
                        fmt::format("{}: the cell is none of the words of {} ({}){}", to_text(place), words.column,
                                    join(words.values, ", ").substr(0, longest_shown_name),
                                    nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
        }
        features_[at + static_cast<std::size_t>(found - words.values.begin())] = 1.0f;
        return {};
    }

    Status read_target(std::string_view cell, const Spot& place) {
        TRY_ASSIGN(const float target, parse_feature(cell, place, records_.form().decimal));
        targets_.push_back(target);
        return {};
    }

    Status read_label(const Cell& cell, const Spot& place) {
        const auto& names = options_.file.class_names;
        const auto name = names.empty() ? std::string() : normal_name(text_of(cell));
        const auto named = names.empty() ? names.end() : std::ranges::find(names, name);
        if (named != names.end()) {
            labels_.push_back(static_cast<std::uint32_t>(named - names.begin()));
            return {};
        }
        if (!names.empty() && !parse_number(cell.text, records_.form().decimal)) {
            const auto nearest = nearest_name(name.substr(0, longest_shown_name), names);
            return fail(ErrorKind::invalid, "bad_label",
                        fmt::format("{}: the label is none of the classes {}{}", to_text(place), join(names, ", "),
                                    nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
        }
        TRY_ASSIGN(const auto label, parse_label(cell.text, place, records_.form().decimal));
        if (records_.note().classes > 0 && label >= records_.note().classes) {
            return fail(ErrorKind::invalid, "label_out_of_range",
                        fmt::format("{}: label {} of {} classes", to_text(place), label, records_.note().classes));
        }
        labels_.push_back(label);
        return {};
    }

    Result<Dataset> finish() {
        if (features_.empty()) {
            return fail(
                ErrorKind::corrupt, "empty",
                fmt::format("{}: {}", file_,
                            options_.missing.kind == MissingRule::Kind::drop ? "no example without a missing value"
                                                                             : "a header, but no example"));
        }
        const auto width = static_cast<std::int64_t>(width_);
        Dataset dataset{std::string(file_), {}, {width}, std::move(features_), std::move(labels_), 0, layout_};
        dataset.targets = std::move(targets_);
        dataset.notes = notes();
        // A part may lack the highest classes of the whole; its note still knows them.
        if (!dataset.labels.empty()) {
            dataset.classes = std::max(records_.note().classes, std::ranges::max(dataset.labels) + 1);
        }
        // With or without a label column, other than the note says, the note's shape is not this table's.
        const bool all_columns = options_.file.features.empty();
        if (!records_.note().shape.empty() && all_columns &&
            label_column_.has_value() == records_.note().label.has_value()) {
            TRY(reshape(dataset, records_.note().shape));
        }
        return dataset;
    }

    /// What a person should know of how the file was understood; of a part there is nothing to know.
    [[nodiscard]] std::vector<std::string> notes() const {
        if (records_.note().found) {
            return {};
        }
        std::vector<std::string> notes{fmt::format("read as {}", to_text(records_.form()))};
        if (records_.form().remarks > 0) {
            notes.push_back(fmt::format("{} lines at the top begin with # and are no rows", records_.form().remarks));
        }
        return notes;
    }

    CsvRecords records_;
    std::string_view file_;
    const DataOptions& options_;
    const ReadLimits& limits_;
    std::size_t columns_ = 0;
    std::optional<std::size_t> label_column_;
    std::size_t width_ = 0;                  // values of an example
    std::vector<std::size_t> place_of_;      // of each column: its (first) value's place in an example, or ignored
    std::vector<const Category*> words_of_;  // of each column; nullptr: it holds numbers
    bool incomplete_ = false;                // this row lacks a value, and is to be left out
    RowLayout layout_;
    std::vector<float> features_;
    std::vector<std::uint32_t> labels_;
    std::vector<float> targets_;  // in their place for regression
};

bool owns_csv_name(std::string_view name) {
    return name.ends_with(".csv") || name.ends_with(".csv.gz");
}

// Text without a name that says so: the first kilobyte holds printable characters only, or it has a mark.
bool owns_content(ByteView bytes) {
    constexpr std::size_t looked_at = 1024;
    const auto text = as_text(bytes);
    return text.starts_with("\xEF\xBB\xBF") || text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") ||
           std::ranges::all_of(text.substr(0, looked_at),
                               [](char c) { return (c >= ' ' && c < 127) || c == '\n' || c == '\r' || c == '\t'; });
}

Result<Dataset> read_csv(const std::filesystem::path& path, ByteView bytes, const DataOptions& options,
                         const ReadLimits& limits) {
    return parse_csv(bytes, path.string(), options, limits);
}

Result<Dataset> read_stream(const std::filesystem::path& path, const DataOptions& options, const ReadLimits& limits) {
    TRY_ASSIGN(auto stream, TextStream::open(path, limits.text_bytes));
    const auto file = path.string();
    return CsvParser(CsvRecords(stream, file), file, options, limits).parse();
}

}  // namespace

Result<CsvColumns> csv_file_columns(const std::filesystem::path& path, const DataOptions& options,
                                    const ReadLimits& limits) {
    TRY_ASSIGN(auto stream, TextStream::open(path, limits.text_bytes));
    const auto file = path.string();
    return CsvParser(CsvRecords(stream, file), file, options, limits).columns();
}

Result<Dataset> parse_csv(ByteView bytes, std::string_view file, const DataOptions& options, const ReadLimits& limits) {
    return CsvParser(CsvRecords(bytes, file), file, options, limits).parse();
}

extern const Reader csv_reader;
const Reader csv_reader{"csv", "NAME.csv or NAME.csv.gz", owns_csv_name, owns_content, read_csv, nullptr, read_stream};

}  // namespace causeway
