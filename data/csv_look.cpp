// The rules, in the order in which they are asked; docs/data.md tells them to the person who has a table.
//
// Separator: of comma, semicolon, tab and bar the one that the first row has. Of several the one by which all rows have
// as many cells; of several such the one that makes numbers of cells, where the others make none or it makes all.
// Header: a first row without numbers over rows with numbers. Decimal mark: what the numbers have. Everything else is
// doubt.
#include "data/csv_look.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "data/names.h"
#include "data/number.h"

namespace causeway {
namespace {

constexpr std::size_t most_records = 1000;
constexpr std::size_t most_records_cells = 1 << 18;  // of a table with very many columns fewer rows are looked at
constexpr std::array<char, 4> known_separators{',', ';', '\t', '|'};
constexpr std::string_view where_to_say =
    "in the manifest, under [data] of the experiment, or as an option of `data inspect`";

tl::unexpected<Error> unclear(std::string_view file, std::string_view what, std::string_view remedy) {
    return fail(ErrorKind::invalid, "unclear_table",
                fmt::format("{}: {}: say {} ({})", file, what, remedy, where_to_say));
}

enum class CellKind { nothing, number, word };

bool is_some_number(std::string_view text) {
    return parse_number(text, '.').has_value() || parse_number(text, ',').has_value();
}

CellKind cell_kind(const Cell& cell) {
    return says_nothing(cell.text) ? CellKind::nothing : is_some_number(cell.text) ? CellKind::number : CellKind::word;
}

/// The first records of a sample by one separator.
struct TableSample {
    std::vector<std::vector<Cell>> rows;
    bool even = true;  // every row has as many cells as the first
    bool fault = false;
    double numbers = 0;  // share of the cells, without the first row's where there are others
};

TableSample sample_by(std::string_view text, CellMarks marks, bool final) {
    TableSample sample;
    std::size_t cells = 0, numbers = 0;
    for (std::vector<Cell> row; !text.empty() && sample.rows.size() < most_records && cells < most_records_cells;) {
        const auto scan = scan_record(text, marks, final, row);
        if (scan.end != RecordScan::End::whole) {
            sample.fault = scan.end != RecordScan::End::more;
            break;
        }
        text.remove_prefix(scan.taken);
        const bool blank = row.size() == 1 && row.front().text.empty() && !row.front().quoted;
        if (blank) {
            continue;  // what it means is the parser's to say
        }
        sample.even = sample.even && (sample.rows.empty() || row.size() == sample.rows.front().size());
        if (sample.rows.size() == 1) {  // names, perhaps, which are no numbers
            cells = numbers = 0;
        }
        cells += row.size();
        numbers += static_cast<std::size_t>(
            std::ranges::count_if(row, [](const Cell& cell) { return cell_kind(cell) == CellKind::number; }));
        sample.rows.push_back(row);
    }
    sample.numbers = cells == 0 ? 0 : static_cast<double>(numbers) / static_cast<double>(cells);
    return sample;
}

struct SeparatorCandidate {
    char separator;
    TableSample sample;
};

/// errors  as look_at_csv's. nullopt: the first record is not whole
Result<std::optional<char>> find_separator(std::string_view text, char quote, bool final, std::optional<char> decimal,
                                           std::string_view file) {
    std::vector<SeparatorCandidate> found;
    for (const char separator : known_separators) {
        if (separator == decimal && separator == ',') {
            continue;
        }
        auto sample = sample_by(text, {separator, quote}, final);
        if (sample.rows.empty() && !sample.fault && !final) {
            return std::nullopt;
        }
        if (!sample.rows.empty() && sample.rows.front().size() > 1) {
            found.push_back({separator, std::move(sample)});
        }
    }
    if (found.empty()) {
        return decimal == ',' ? ';' : ',';  // one column
    }
    const bool some_even =
        std::ranges::any_of(found, [](const auto& one) { return one.sample.even && !one.sample.fault; });
    if (found.size() > 1 && some_even) {
        std::erase_if(found, [](const auto& one) { return !one.sample.even || one.sample.fault; });
    }
    if (found.size() == 1) {
        return found.front().separator;
    }
    std::ranges::sort(found, std::greater(), [](const auto& one) { return one.sample.numbers; });
    // Numbers with a decimal comma are cut into two numbers at the comma: all cells are numbers by both.
    const double best = found[0].sample.numbers, next = found[1].sample.numbers;
    if (best > next && (best >= 1 || next <= 0)) {
        return found.front().separator;
    }
    return unclear(file,
                   fmt::format("{} and {} both divide its rows evenly", separator_word(found[0].separator),
                               separator_word(found[1].separator)),
                   fmt::format("separator = {} or another", separator_word(found[0].separator)));
}

/// A first row of numbers that count up by equal steps: 0, 1, 2, 3 or 2019, 2020.
bool counts_up(const std::vector<Cell>& row, const std::vector<std::size_t>& columns) {
    double before = 0, step = 0;
    bool years = true;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto value = columns[i] < row.size() ? parse_number(row[columns[i]].text) : std::nullopt;
        if (!value || *value != std::floor(*value)) {
            return false;
        }
        years = years && *value >= 1900 && *value <= 2100;
        if (i == 1) {
            step = *value - before;
        }
        if (i > 0 && (step <= 0 || *value - before != step)) {
            return false;
        }
        before = *value;
    }
    return columns.size() >= (years ? 2 : 3);
}

class HeaderLook {
public:
    HeaderLook(std::span<const std::vector<Cell>> rows, CellMarks marks, std::string_view file)
        : first_(rows.front()), rest_(rows.subspan(1)), marks_(marks), file_(file) {
        for (std::size_t column = 0; column < first_.size(); ++column) {
            switch (cell_kind(first_[column])) {
                case CellKind::number:
                    numbers_.push_back(column);
                    break;
                case CellKind::word:
                    words_.push_back(column);
                    break;
                case CellKind::nothing:
                    break;
            }
        }
    }

    Result<bool> look(std::span<const std::string> asked) {
        if (has_name(asked)) {
            return true;
        }
        if (rest_.empty()) {
            return numbers_.empty();
        }
        if (only_first_is_quoted()) {
            return true;
        }
        const auto over = word_over_numbers();
        if (numbers_.empty()) {
            return over ? Result<bool>(true) : doubt("no row has what tells names from values");
        }
        if (over) {
            return doubt(fmt::format("its column {} is a word over numbers, but others are numbers", *over + 1));
        }
        const bool alone = std::ranges::none_of(rest_, [&](const auto& row) { return counts_up(row, numbers_); });
        if (alone && counts_up(first_, numbers_)) {
            return doubt("its numbers count up, as names of columns do");
        }
        return false;
    }

private:
    [[nodiscard]] bool has_name(std::span<const std::string> asked) const {
        return std::ranges::any_of(asked, [&](const auto& name) {
            return std::ranges::any_of(words_, [&](std::size_t column) {
                return normal_name(cell_text(first_[column], marks_.quote)) == name;
            });
        });
    }

    /// Programs that put names in quotes leave numbers without.
    [[nodiscard]] bool only_first_is_quoted() const {
        bool numbers = false;
        for (const auto& row : rest_) {
            for (const auto& cell : row) {
                const bool number = cell_kind(cell) == CellKind::number;
                if (number && cell.quoted) {
                    return false;
                }
                numbers = numbers || number;
            }
        }
        return numbers && std::ranges::all_of(first_, &Cell::quoted);
    }

    /// A column whose first cell is a word, and all others numbers.
    [[nodiscard]] std::optional<std::size_t> word_over_numbers() const {
        for (const auto column : words_) {
            std::size_t numbers = 0, others = 0;
            for (const auto& row : rest_) {
                const auto kind = column < row.size() ? cell_kind(row[column]) : CellKind::nothing;
                numbers += kind == CellKind::number ? 1 : 0;
                others += kind == CellKind::word ? 1 : 0;
            }
            if (numbers > 0 && others * 2 < numbers) {  // a damaged cell is not yet a column of words
                return column;
            }
        }
        return std::nullopt;
    }

    [[nodiscard]] tl::unexpected<Error> doubt(std::string_view why) const {
        return unclear(file_,
                       fmt::format("the first row ({} columns with separator {}) may be a header or an example, for {}",
                                   first_.size(), separator_word(marks_.separator), why),
                       "header = \"yes\" or header = \"no\"");
    }

    const std::vector<Cell>& first_;
    std::span<const std::vector<Cell>> rest_;
    CellMarks marks_;
    std::string_view file_;
    std::vector<std::size_t> numbers_;  // columns of the first row
    std::vector<std::size_t> words_;
};

/// "1.234" or "1,234,567": by `mark` it may be thousands.
bool may_be_thousands(std::string_view text, char mark) {
    if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
        text.remove_prefix(1);
    }
    const auto first = text.find(mark);
    if (first == std::string_view::npos || first == 0 || first > 3 || text.front() == '0') {
        return false;
    }
    const auto digits = [](std::string_view part) {
        return std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    };
    for (std::size_t at = first; at < text.size(); at += 4) {
        if (text[at] != mark || at + 4 > text.size() || !digits(text.substr(at + 1, 3))) {
            return false;
        }
    }
    return digits(text.substr(0, first));
}

Result<char> find_decimal(std::span<const std::vector<Cell>> rows, char separator, std::string_view file) {
    std::size_t points = 0, commas = 0, point_groups = 0, comma_groups = 0;
    for (const auto& row : rows) {
        for (const auto& cell : row) {
            const bool point = cell.text.find('.') != std::string_view::npos && parse_number(cell.text, '.');
            const bool comma = cell.text.find(',') != std::string_view::npos && parse_number(cell.text, ',');
            (may_be_thousands(cell.text, '.') ? point_groups : points) += point ? 1 : 0;
            (may_be_thousands(cell.text, ',') ? comma_groups : commas) +=
                comma || may_be_thousands(cell.text, ',') ? 1 : 0;
        }
    }
    const auto doubt = [&](std::string_view what) { return unclear(file, what, "decimal = \".\" or decimal = \",\""); };
    if (commas > 0 && points + point_groups > 0) {
        return doubt("some numbers have a decimal point and some a decimal comma");
    }
    if (commas > 0) {
        return ',';
    }
    if (comma_groups > 0) {
        return doubt("numbers such as 1,234 may be thousands or have a decimal comma");
    }
    if (separator == ';' && points == 0 && point_groups > 0) {
        return doubt("numbers such as 1.234 may be thousands or have a decimal point");
    }
    return '.';
}

}  // namespace

std::string to_text(const CsvForm& form) {
    std::string text = fmt::format("{}, separator {}, decimal \"{}\"", encoding_word(form.encoding),
                                   separator_word(form.marks.separator), form.decimal);
    if (form.marks.quote != '"') {
        text += form.marks.quote == 0 ? ", no quotes" : fmt::format(", quote {}", form.marks.quote);
    }
    return text + (form.header ? ", header" : ", no header");
}

Result<std::optional<CsvForm>> look_at_csv(std::string_view sample, bool final, const LookHints& hints,
                                           std::string_view file) {
    CsvForm form;
    form.marks.quote = hints.said.quote.value_or('"');
    if (hints.said.separator) {
        form.marks.separator = *hints.said.separator;
    } else {
        TRY_ASSIGN(const auto found, find_separator(sample, form.marks.quote, final, hints.said.decimal, file));
        if (!found) {
            return std::nullopt;
        }
        form.marks.separator = *found;
    }
    const auto [rows, even, fault, numbers] = sample_by(sample, form.marks, final);
    if (rows.empty()) {  // what is wrong is said where it is read
        form.header = hints.said.header.value_or(false);
        form.decimal = hints.said.decimal.value_or('.');
        return final || fault ? std::optional(form) : std::nullopt;
    }
    if (hints.said.header) {
        form.header = *hints.said.header;
    } else {
        TRY_ASSIGN(form.header, HeaderLook(rows, form.marks, file).look(hints.names));
    }
    if (hints.said.decimal) {
        form.decimal = *hints.said.decimal;
    } else {
        TRY_ASSIGN(form.decimal,
                   find_decimal(std::span(rows).subspan(form.header ? 1 : 0), form.marks.separator, file));
    }
    return form;
}

}  // namespace causeway
