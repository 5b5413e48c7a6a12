// How a table is written down: header, separator, encoding, decimal mark, quotes.
//
// What is not said is found by looking at the file (data/csv_look.h), and `data inspect` says what was found. A
// manifest, [data] of an experiment and the options of commands say it in the same words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace causeway {

enum class Encoding { look, utf8, utf16le, utf16be, cp1252, latin1 };

/// What is said of a table; the default of each is to look.
struct TableForm {
    std::optional<bool> header;  // whether the first row has the columns' names
    std::optional<char> separator;
    Encoding encoding = Encoding::look;
    std::optional<char> decimal;  // '.' or ','
    std::optional<char> quote;    // '"' or '\''; 0: none
    bool operator==(const TableForm&) const = default;
};

/// "header", "separator", "encoding", "decimal", "quote".
[[nodiscard]] const std::vector<std::string>& table_form_keys();

/// Sets one of the keys: header `yes` or `no`; separator `,` or another sign, or `tab`; encoding `utf-8`, `utf-16le`,
/// `utf-16be`, `cp1252` or `latin-1`; decimal `.` or `,`; quote `"`, `'` or `none`; `look` for each.
///
/// errors  invalid `table_form`: the message has the words that there are
[[nodiscard]] Status set_table_form(TableForm& form, std::string_view key, std::string_view word);
/// The word of a key as set_table_form takes it; "look" where nothing is said.
[[nodiscard]] std::string table_form_word(const TableForm& form, std::string_view key);

/// What `over` says, and below it what `form` says.
[[nodiscard]] TableForm merged(TableForm form, const TableForm& over);

/// Empty when the words go together; else why not: a separator that is the decimal mark or the quote.
[[nodiscard]] std::string table_form_fault(const TableForm& form);

/// "utf-8", as it is said to people. `look` has none.
[[nodiscard]] std::string_view encoding_word(Encoding encoding);
/// "\";\"" or "tab".
[[nodiscard]] std::string separator_word(char separator);

}  // namespace causeway
