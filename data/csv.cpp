// The CSV parser: one pass over the text, one line and one cell at a time, every value converted where it stands.
//
// Why not a table of text first: a row costs no allocation, the place of a wrong value is known when it is met, and
// what a hostile file can make us hold is bounded by its size (four bytes of features for at least two of text).
// The first line decides all that follows: whether there is a header, how many columns, which of them is the label.
#include "data/csv.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "common/text.h"
#include "data/columns.h"
#include "data/number.h"
#include "data/text_stream.h"

namespace causeway {
namespace {

constexpr std::size_t ignored = static_cast<std::size_t>(-1);
constexpr std::size_t longest_shown_name = 80;    // of a wrong label
constexpr std::size_t csv_block_bytes = 1 << 20;  // of a file that is read a block at a time
constexpr std::size_t longest_line = 64 << 20;   // in such a file
constexpr std::size_t rows_before_guess = 4096;  // enough to tell how long a row is

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
        : text_(as_text(bytes)), file_(file), options_(options), limits_(limits) {}
    CsvParser(TextStream& stream, std::string_view file, const DataOptions& options, const ReadLimits& limits)
        : stream_(&stream), file_(file), options_(options), limits_(limits) {}

    Result<CsvColumns> columns() {
        TRY(begin());
        return CsvColumns{std::move(layout_.columns), columns_};
    }

    Result<Dataset> parse() {
        TRY(begin());
        TRY(choose_columns());
        if (layout_.columns.empty()) {
            TRY(read_row());  // the first line was a row
        }
        while (next_line()) {
            make_room();
            TRY(read_row());
        }
        return trouble_ ? Result<Dataset>(fail(*trouble_)) : finish();
    }

private:
    Status begin() {
        refill();
        if (text_.starts_with("\xEF\xBB\xBF")) {  // the mark some spreadsheets put first
            text_.remove_prefix(3);
        }
        TRY(read_comments());
        return find_columns();
    }

    /// More text behind what is left of the last block; no more at the end, or when something is wrong with the file.
    bool refill() {
        if (stream_ == nullptr || trouble_) {
            return false;
        }
        if (text_.size() > longest_line) {
            trouble_ =
                Error{ErrorKind::overloaded, "too_large",
                      fmt::format("{}: a line of more than {} bytes", to_text(Spot{file_, row_ + 1}), longest_line)};
            return false;
        }
        std::string next(text_);
        const std::size_t before = next.size();
        next.resize(before + std::max(csv_block_bytes, before));  // a long line is copied a few times at most
        const auto room = std::as_writable_bytes(std::span(next)).subspan(before);
        const auto count = stream_->read(room);
        if (!count) {
            trouble_ = count.error();
        }
        next.resize(before + count.value_or(0));
        block_ = std::move(next);
        text_ = block_;
        return text_.size() > before;
    }

    /// Room for all examples at once, as far as the share of the file that is read tells: growing by doubling would
    /// hold the examples twice.
    void make_room() {
        if (stream_ == nullptr || features_.size() + width_ <= features_.capacity() ||
            features_.size() < rows_before_guess * width_) {
            return;
        }
        const double all = static_cast<double>(features_.size()) / stream_->progress();
        const auto room = static_cast<std::uint64_t>(all * 1.02) + rows_before_guess * width_;
        features_.reserve(std::min(room, limits_.values + width_));
    }

    // The next line into line_; false at the end. Blank lines at the very end are none.
    bool next_line() {
        while (text_.find('\n') == std::string_view::npos || is_blank(text_)) {
            if (!refill()) {
                break;
            }
        }
        if (is_blank(text_) || trouble_) {
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

    static bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

    Status read_comments() {
        while (text_.starts_with('#') && next_line()) {
            if (is_part_note(line_)) {
                auto note = parse_part_note(line_);
                if (!note) {
                    return fail(with_context(std::move(note).error(), to_text(Spot{file_, row_})));
                }
                note_ = *std::move(note);
            }
        }
        return {};
    }

    /// Stands behind the first line, which decides how many columns there are and whether they have names.
    Status find_columns() {
        if (!next_line()) {
            return trouble_
                       ? fail(*trouble_)
                       : fail(ErrorKind::corrupt, "empty", fmt::format("{}: there is no example in the file", file_));
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
                            fmt::format("{}: more than {} columns", to_text(Spot{file_, row_}), limits_.columns));
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
            if (note_.expanded) {
                break;
            }
            TRY_ASSIGN(const auto column, find_column(category.column, layout_.columns, columns_, file_));
            if (column == label_column_) {
                return fail(ErrorKind::invalid, "repeated_column",
                            fmt::format("{}: '{}' is the label, whose words are classes", file_, category.column));
            }
            words_of_[column] = &category;
        }
        return {};
    }

    /// A part is written with what was chosen: all columns where they stood, or the chosen ones and then the label.
    void choose_layout(const ColumnPlan& plan) {
        layout_.label_column = label_column_.value_or(0);
        layout_.expanded = note_.expanded;
        const bool has_words = std::ranges::any_of(words_of_, [](const Category* words) { return words != nullptr; });
        if (options_.file.features.empty() && !has_words) {
            return;
        }
        RowLayout chosen{.columns = {}, .label_column = width_, .expanded = has_words || note_.expanded};
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
        std::size_t column = 0;
        auto rest = line_;
        const std::size_t before = features_.size();
        const std::size_t labels = labels_.size(), targets = targets_.size();
        incomplete_ = false;
        features_.resize(before + width_);
        for (bool more = true; more; ++column) {
            const auto cell = next_cell(rest);
            more = cell.more;
            if (column < columns_) {  // more are counted for the message, and not kept
                TRY(read_cell(without_quotes(cell.raw), column));
            }
        }
        if (column != columns_) {
            return fail(ErrorKind::corrupt, "ragged",
                        fmt::format("{}: {} values, but the rows before have {}", to_text(Spot{file_, row_}), column,
                                    columns_));
        }
        if (incomplete_) {  // and the rule says that it is left out
            features_.resize(before);
            labels_.resize(labels);
            targets_.resize(targets);
        }
        if (features_.size() > limits_.values) {
            return fail(ErrorKind::overloaded, "too_large",
                        fmt::format("{}: more than {} values", to_text(Spot{file_, row_}), limits_.values));
        }
        return {};
    }

    Status read_cell(std::string_view cell, std::size_t column) {
        const Spot place{file_, row_, column + 1};
        const bool used = column == label_column_ || place_of_[column] != ignored;
        if (used && says_nothing(cell)) {
            return read_missing(column, place);
        }
        if (column == label_column_) {
            return options_.target == Target::number ? read_target(cell, place) : read_label(cell, place);
        }
        if (!used) {
            return {};
        }
        const std::size_t at = features_.size() - width_ + place_of_[column];
        if (words_of_[column] != nullptr) {
            return read_word(cell, *words_of_[column], at, place);
        }
        TRY_ASSIGN(features_[at], parse_feature(cell, place));
        return {};
    }

    /// What spreadsheets and data frames write where there is nothing. Where it is one of a column's words, or nobody
    /// has said what to do about it, it is read as any other cell.
    [[nodiscard]] bool says_nothing(std::string_view cell) const {
        constexpr std::array<std::string_view, 8> nothings{"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"};
        return options_.missing.kind != MissingRule::Kind::refuse &&
               std::ranges::find(nothings, cell) != nothings.end();
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

    Status read_word(std::string_view cell, const Category& words, std::size_t at, const Spot& place) {
        const auto name = name_of(cell);
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
        TRY_ASSIGN(const float target, parse_feature(cell, place));
        targets_.push_back(target);
        return {};
    }

    Status read_label(std::string_view cell, const Spot& place) {
        const auto& names = options_.file.class_names;
        const auto named = names.empty() ? names.end() : std::ranges::find(names, name_of(cell));
        if (named != names.end()) {
            labels_.push_back(static_cast<std::uint32_t>(named - names.begin()));
            return {};
        }
        if (!names.empty() && !parse_number(cell)) {
            const auto nearest = nearest_name(cell.substr(0, longest_shown_name), names);
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
            return fail(
                ErrorKind::corrupt, "empty",
                fmt::format("{}: {}", file_,
                            options_.missing.kind == MissingRule::Kind::drop ? "no example without a missing value"
                                                                             : "a header, but no example"));
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

    TextStream* stream_ = nullptr;  // where more text comes from
    std::string block_;             // of the stream: what text_ shows
    std::optional<Error> trouble_;  // of the stream
    std::string_view text_;         // what is still to come, of the block where there is a stream
    std::string_view file_;
    const DataOptions& options_;
    const ReadLimits& limits_;
    std::string_view line_;
    std::size_t row_ = 0;  // of line_, from 1
    PartNote note_;
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

// Text without a name that says so: the first kilobyte holds printable characters only.
bool owns_content(ByteView bytes) {
    constexpr std::size_t looked_at = 1024;
    return std::ranges::all_of(as_text(bytes).substr(0, looked_at),
                               [](char c) { return (c >= ' ' && c < 127) || c == '\n' || c == '\r' || c == '\t'; });
}

Result<Dataset> read_csv(const std::filesystem::path& path, ByteView bytes, const DataOptions& options,
                         const ReadLimits& limits) {
    return parse_csv(bytes, path.string(), options, limits);
}

Result<Dataset> read_stream(const std::filesystem::path& path, const DataOptions& options, const ReadLimits& limits) {
    TRY_ASSIGN(auto stream, TextStream::open(path, limits.text_bytes));
    return CsvParser(stream, path.string(), options, limits).parse();
}

}  // namespace

Result<CsvColumns> csv_file_columns(const std::filesystem::path& path, const ReadLimits& limits) {
    TRY_ASSIGN(auto stream, TextStream::open(path, limits.text_bytes));
    const DataOptions none;
    return CsvParser(stream, path.string(), none, limits).columns();
}

Result<Dataset> parse_csv(ByteView bytes, std::string_view file, const DataOptions& options, const ReadLimits& limits) {
    return CsvParser(bytes, file, options, limits).parse();
}

extern const Reader csv_reader;
const Reader csv_reader{"csv", "NAME.csv or NAME.csv.gz", owns_csv_name, owns_content, read_csv, nullptr, read_stream};

}  // namespace causeway
