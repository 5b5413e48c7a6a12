// Finding by looking how a table is written: separator, decimal mark, whether the first row is a header. What is said
// goes first; what the rows leave open is an error with the remedy, never a guess. Pure, any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/result.h"
#include "data/csv_cells.h"
#include "data/table_form.h"

namespace causeway {

/// How the table is read.
struct CsvForm {
    Encoding encoding = Encoding::utf8;
    CellMarks marks;
    char decimal = '.';
    bool header = false;
    std::size_t remarks = 0;  // lines at the top that begin with '#'
};
/// `utf-8, separator ";", decimal ",", header`
[[nodiscard]] std::string to_text(const CsvForm& form);

/// What else is known when a table is looked at.
struct LookHints {
    TableForm said;
    std::span<const std::string> names;  // of columns that somebody asks for: a first row that has one is a header
};

/// `sample`: whole lines and perhaps a part of one from behind the remarks; `final`: it is all there is. nullopt: its
/// first record is not whole, and more text is needed.
///
/// errors  invalid `unclear_table`: separator, decimal mark or header can be two things
[[nodiscard]] Result<std::optional<CsvForm>> look_at_csv(std::string_view sample, bool final, const LookHints& hints,
                                                         std::string_view file);

}  // namespace causeway
