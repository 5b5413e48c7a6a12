// The CSV parser: one pass over the text, one line and one cell at a time, every value converted where it stands.
//
// Why not a table of text first: a row costs no allocation, the place of a wrong value is known when it is met, and
// what a hostile file can make us hold is bounded by its size (four bytes of features for at least two of text).
// The first line decides all that follows: whether there is a header, how many columns, which of them is the label.
#include "data/csv.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/text.h"
#include "data/columns.h"
#include "data/number.h"

namespace causeway {
namespace {

constexpr std::string_view note_prefix = "# causeway";
constexpr std::size_t ignored = static_cast<std::size_t>(-1);
constexpr std::size_t longest_shown = 80;  // of a wrong label

Result<std::uint32_t> parse_count(std::string_view text, std::uint32_t least, std::uint32_t most) {
    std::uint32_t count = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (code != std::errc() || end != text.data() + text.size() || count < least || count > most) {
        return fail(ErrorKind::corrupt, "bad_note", fmt::format("expected a whole number from {} to {}", least, most));
    }
    return count;
}

// Words that a later version adds are skipped.
Result<PartNote> parse_note(std::string_view line) {
    PartNote note;
    for (const auto& word : split_text(line.substr(note_prefix.size()), ' ')) {
        const std::string_view view(word);
        if (view.starts_with("label=")) {
            TRY_ASSIGN(note.label, parse_count(view.substr(6), 0, max_classes));
        } else if (view.starts_with("classes=")) {
            TRY_ASSIGN(note.classes, parse_count(view.substr(8), 1, max_classes));
        } else if (view.starts_with("shape=")) {
            TRY_ASSIGN(note.shape, parse_shape(view.substr(6)));
        }
    }
    return note;
}

// A comma in quotes separates nothing; quotes never span lines, so a missing one spoils a single row.
// One cell from the front of `line`; what follows its comma is left in `line`, and `more` says whether there is any.
struct Cell {
    std::string_view raw;  // between the commas, quotes still on
    bool more = false;
};

Cell next_cell(std::string_view& line) {
    bool quoted = false;
    std::size_t end = 0;
    for (; end < line.size() && (quoted || line[end] != ','); ++end) {
        quoted ^= line[end] == '"';
    }
    const Cell cell{trim(line.substr(0, end)), end < line.size()};
    line.remove_prefix(std::min(end + 1, line.size()));
    return cell;
}

std::string_view without_quotes(std::string_view cell) {
    const bool quoted = cell.size() >= 2 && cell.front() == '"' && cell.back() == '"';
    return quoted ? cell.substr(1, cell.size() - 2) : cell;
}

std::string name_of(std::string_view cell) {
    std::string name;
    const auto text = without_quotes(cell);
    for (std::size_t i = 0; i < text.size(); ++i) {
        name += text[i];
        i += text.size() != cell.size() && text.substr(i, 2) == "\"\"" ? 1 : 0;
    }
    return name;
}

// One use: parse() takes the text apart and moves its findings out.
class CsvParser {
public:
    CsvParser(ByteView bytes, std::string_view file, const DataOptions& options, const ReadLimits& limits)
        : text_(as_text(bytes)), file_(file), options_(options), limits_(limits) {
        if (text_.starts_with("\xEF\xBB\xBF")) {  // the mark some spreadsheets put first
            text_.remove_prefix(3);
        }
    }

    Result<CsvColumns> columns() {
        TRY(read_comments());
        TRY(find_columns());
        return CsvColumns{std::move(layout_.columns), columns_};
    }

    Result<Dataset> parse() {
        TRY(read_comments());
        TRY(find_columns());
        TRY(choose_columns());
        if (layout_.columns.empty()) {
            TRY(read_row());  // the first line was a row
        }
        while (next_line()) {
            TRY(read_row());
        }
        return finish();
    }

private:
    // The next line into line_; false at the end. Blank lines at the very end are none.
    bool next_line() {
        if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos) {
            return false;
        }
        const auto end = std::min(text_.find('\n'), text_.size());
        line_ = text_.substr(0, end);
        text_.remove_prefix(std::min(end + 1, text_.size()));
        if (line_.ends_with('\r')) {
            line_.remove_suffix(1);
        }
        ++row_;
        return true;
    }

    Status read_comments() {
        while (text_.starts_with('#') && next_line()) {
            if (line_.starts_with(note_prefix)) {
                auto note = parse_note(line_);
                if (!note) {
                    return fail(with_context(std::move(note).error(), to_text(Place{file_, row_})));
                }
                note_ = *std::move(note);
            }
        }
        return {};
    }

    /// Stands behind the first line, which decides how many columns there are and whether they have names.
    Status find_columns() {
        if (!next_line()) {
            return fail(ErrorKind::corrupt, "empty", fmt::format("{}: there is no example in the file", file_));
        }
        std::size_t numbers = 0;
        std::vector<std::string> names;
        auto rest = line_;
        for (bool more = true; more;) {
            const auto cell = next_cell(rest);
            more = cell.more;
            numbers += parse_number(without_quotes(cell.raw)).has_value() ? 1 : 0;
            names.push_back(name_of(cell.raw));
            if (names.size() > limits_.columns) {
                return fail(ErrorKind::overloaded, "too_many_columns",
                            fmt::format("{}: more than {} columns", to_text(Place{file_, row_}), limits_.columns));
            }
        }
        columns_ = names.size();
        // Only a line without any number is a header. One that mixes both is a data row with a wrong value: taking it
        // for a header would silently lose an example.
        const bool header = numbers == 0;
        if (header) {
            layout_.columns = std::move(names);
        }
        return {};
    }

    Status choose_columns() {
        const auto noted = note_.label ? fmt::format("{}", *note_.label) : "";
        const auto& label = options_.label.empty() ? noted : options_.label;
        auto plan = plan_columns(label, options_.file.features, layout_.columns, columns_, file_);
        if (!plan) {
            return fail(std::move(plan.error().front().error));
        }
        label_column_ = plan->label;
        width_ = plan->features.size();
        place_of_.assign(columns_, ignored);
        for (std::size_t i = 0; i < width_; ++i) {
            place_of_[plan->features[i]] = i;
        }
        choose_layout(*plan);
        return {};
    }

    /// A part is written with what was chosen: all columns where they stood, or the chosen ones and then the label.
    void choose_layout(const ColumnPlan& plan) {
        layout_.label_column = label_column_.value_or(0);
        if (options_.file.features.empty()) {
            return;
        }
        RowLayout chosen{.columns = {}, .label_column = width_};
        if (!layout_.columns.empty()) {
            std::ranges::transform(plan.features, std::back_inserter(chosen.columns),
                                   [&](std::size_t column) { return layout_.columns[column]; });
            if (label_column_) {
                chosen.columns.push_back(layout_.columns[*label_column_]);
            }
        }
        layout_ = std::move(chosen);
    }

    Status read_row() {
        std::size_t column = 0;
        auto rest = line_;
        features_.resize(features_.size() + width_);
        for (bool more = true; more; ++column) {
            const auto cell = next_cell(rest);
            more = cell.more;
            if (column < columns_) {  // more are counted for the message, and not kept
                TRY(read_cell(without_quotes(cell.raw), column));
            }
        }
        if (column != columns_) {
            return fail(ErrorKind::corrupt, "ragged",
                        fmt::format("{}: {} values, but the rows before have {}", to_text(Place{file_, row_}), column,
                                    columns_));
        }
        if (features_.size() > limits_.values) {
            return fail(ErrorKind::overloaded, "too_large",
                        fmt::format("{}: more than {} values", to_text(Place{file_, row_}), limits_.values));
        }
        return {};
    }

    Status read_cell(std::string_view cell, std::size_t column) {
        const Place place{file_, row_, column + 1};
        if (column == label_column_) {
            return options_.target == Target::number ? read_target(cell, place) : read_label(cell, place);
        }
        if (place_of_[column] != ignored) {
            TRY_ASSIGN(features_[features_.size() - width_ + place_of_[column]], parse_feature(cell, place));
        }
        return {};
    }

    Status read_target(std::string_view cell, const Place& place) {
        TRY_ASSIGN(const float target, parse_feature(cell, place));
        targets_.push_back(target);
        return {};
    }

    Status read_label(std::string_view cell, const Place& place) {
        const auto& names = options_.file.class_names;
        const auto named = names.empty() ? names.end() : std::ranges::find(names, name_of(cell));
        if (named != names.end()) {
            labels_.push_back(static_cast<std::uint32_t>(named - names.begin()));
            return {};
        }
        if (!names.empty() && !parse_number(cell)) {
            const auto nearest = nearest_name(cell.substr(0, longest_shown), names);
            return fail(ErrorKind::invalid, "bad_label",
                        fmt::format("{}: the label is none of the classes {}{}", to_text(place), join(names, ", "),
                                    nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
        }
        TRY_ASSIGN(const auto label, parse_label(cell, place));
        if (note_.classes > 0 && label >= note_.classes) {
            return fail(ErrorKind::invalid, "label_out_of_range",
                        fmt::format("{}: label {} of {} classes", to_text(place), label, note_.classes));
        }
        labels_.push_back(label);
        return {};
    }

    Result<Dataset> finish() {
        if (features_.empty()) {
            return fail(ErrorKind::corrupt, "empty", fmt::format("{}: a header, but no example", file_));
        }
        const auto width = static_cast<std::int64_t>(width_);
        Dataset dataset{std::string(file_), {}, {width}, std::move(features_), std::move(labels_), 0, layout_};
        dataset.targets = std::move(targets_);
        // A part may lack the highest classes of the whole; its note still knows them.
        if (!dataset.labels.empty()) {
            dataset.classes = std::max(note_.classes, std::ranges::max(dataset.labels) + 1);
        }
        // With or without a label column, other than the note says, the note's shape is not this table's.
        const bool all_columns = options_.file.features.empty();
        if (!note_.shape.empty() && all_columns && label_column_.has_value() == note_.label.has_value()) {
            TRY(reshape(dataset, note_.shape));
        }
        return dataset;
    }

    std::string_view text_;  // what is still to come
    std::string_view file_;
    const DataOptions& options_;
    const ReadLimits& limits_;
    std::string_view line_;
    std::size_t row_ = 0;  // of line_, from 1
    PartNote note_;
    std::size_t columns_ = 0;
    std::optional<std::size_t> label_column_;
    std::size_t width_ = 0;              // values of an example
    std::vector<std::size_t> place_of_;  // of each column: its value's place in an example, or ignored
    RowLayout layout_;
    std::vector<float> features_;
    std::vector<std::uint32_t> labels_;
    std::vector<float> targets_;  // in their place for regression
};

bool owns_name(std::string_view name) {
    return name.ends_with(".csv") || name.ends_with(".csv.gz");
}

// Text without a name that says so: the first kilobyte holds printable characters only.
bool owns_content(ByteView bytes) {
    constexpr std::size_t looked_at = 1024;
    return std::ranges::all_of(as_text(bytes).substr(0, looked_at),
                               [](char c) { return (c >= ' ' && c < 127) || c == '\n' || c == '\r' || c == '\t'; });
}

Result<Dataset> read(const std::filesystem::path& path, ByteView bytes, const DataOptions& options,
                     const ReadLimits& limits) {
    return parse_csv(bytes, path.string(), options, limits);
}

}  // namespace

std::string to_text(const PartNote& note) {
    if (note == PartNote{}) {
        return {};
    }
    std::string text(note_prefix);
    text += note.label ? fmt::format(" label={}", *note.label) : "";
    text += note.classes == 0 ? "" : fmt::format(" classes={}", note.classes);
    text += note.shape.empty() ? "" : " shape=" + shape_text(note.shape);
    return text;
}

Result<CsvColumns> csv_columns(ByteView bytes, std::string_view file, const ReadLimits& limits) {
    const DataOptions none;
    return CsvParser(bytes, file, none, limits).columns();
}

Result<Dataset> parse_csv(ByteView bytes, std::string_view file, const DataOptions& options, const ReadLimits& limits) {
    return CsvParser(bytes, file, options, limits).parse();
}

extern const Reader csv_reader;
const Reader csv_reader{"csv", "NAME.csv or NAME.csv.gz", owns_name, owns_content, read};

}  // namespace causeway
