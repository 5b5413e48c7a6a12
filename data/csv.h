// Tables as text: one example a record, cells between separators, an optional first record of names (RFC 4180).
//
//   file     = *( "#" remark NL ) [ header NL ] 1*( row NL ) *NL          NL: LF, CRLF or CR
//   header   = name *( SEP name )         SEP: comma, or what is said or found (data/csv_look.h)
//   row      = number *( SEP number )     as many as in the first row; spaces around are ignored. Columns that a
//                                         manifest does not choose may hold anything, a label the name of its class,
//                                         a column of words (`categories`) one of its words
//   cell     may stand in double quotes, "" inside is a quote, and separators and line breaks are text
//   remark   "# causeway label=64 classes=10 shape=8x8x1", as data/write.h puts it, is understood; others are skipped
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "data/part_note.h"
#include "data/reader.h"

namespace causeway {

/// The columns of a CSV file.
struct CsvColumns {
    std::vector<std::string> names;  // of the header, normal (data/names.h); empty: there is none
    std::size_t count = 0;
};
/// Reads the first block, as parse_csv would with these options.
///
/// errors  corrupt empty; overloaded too_many_columns; those of data/csv_records.h
[[nodiscard]] Result<CsvColumns> csv_file_columns(const std::filesystem::path& path, const DataOptions& options,
                                                  const ReadLimits& limits);

/// Parses a CSV file's bytes; `file` is its name in messages. Without options.label the label is the part note's.
///
/// errors  corrupt: ragged, not_a_number, not_finite, missing_value, unknown_word, empty, bad_quote, bad_encoding;
///         invalid: unclear_table, bad_label, no_such_column, ambiguous_column, repeated_column, label_out_of_range;
///         overloaded: too many columns or values
[[nodiscard]] Result<Dataset> parse_csv(ByteView bytes, std::string_view file, const DataOptions& options,
                                        const ReadLimits& limits);

}  // namespace causeway
