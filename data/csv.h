// CSV text: comma-separated numbers, one example a line, an optional header line of names.
//
//   file     = *( "#" comment NL ) [ header NL ] 1*( row NL ) *NL          NL: LF or CRLF
//   header   = name *( "," name )         every cell is something other than a number
//   row      = number *( "," number )     as many as in the first row; spaces around are ignored. Columns that a
//                                         manifest does not choose may hold anything, a label the name of its class,
//                                         a column of words (`categories`) one of its words
//   cell     may stand in double quotes, "" inside is a quote; it never spans lines
//   comment  "# causeway label=64 classes=10 shape=8x8x1", as data/write.h puts it, is understood; others are skipped
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
    std::vector<std::string> names;  // of the header; empty: there is none
    std::size_t count = 0;
};
/// Reads no further than the first line that is not a comment.
///
/// errors  corrupt empty; overloaded too_many_columns; those of data/text_stream.h
[[nodiscard]] Result<CsvColumns> csv_file_columns(const std::filesystem::path& path, const ReadLimits& limits);

/// Parses a CSV file's bytes; `file` is its name in messages. Without options.label the label is the part note's.
///
/// errors  corrupt: ragged, not_a_number, not_finite, missing_value, unknown_word, empty; invalid: bad_label,
///         no_such_column, repeated_column, label_out_of_range; overloaded: too many columns or values
[[nodiscard]] Result<Dataset> parse_csv(ByteView bytes, std::string_view file, const DataOptions& options,
                                        const ReadLimits& limits);

}  // namespace causeway
