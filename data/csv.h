// CSV text: comma-separated numbers, one example a line, an optional header line of names.
//
//   file     = *( "#" comment NL ) [ header NL ] 1*( row NL ) *NL          NL: LF or CRLF
//   header   = name *( "," name )         every cell is something other than a number
//   row      = number *( "," number )     as many as in the first row; spaces around are ignored. Columns that a
//                                         manifest does not choose may hold anything, a label the name of its class
//   cell     may stand in double quotes, "" inside is a quote; it never spans lines
//   comment  "# causeway label=64 classes=10 shape=8x8x1", as data/write.h puts it, is understood; others are skipped
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "data/reader.h"

namespace causeway {

/// What the first line of a written part says; empty or 0 where it says nothing.
struct PartNote {
    std::optional<std::size_t> label;  // column index from 0
    std::uint32_t classes = 0;         // of the whole dataset
    std::vector<std::int64_t> shape;   // of one example
    bool operator==(const PartNote&) const = default;
};
[[nodiscard]] std::string to_text(const PartNote& note);  // without the newline; "" for an empty note

/// The columns of a CSV file.
struct CsvColumns {
    std::vector<std::string> names;  // of the header; empty: there is none
    std::size_t count = 0;
};
/// Reads no further than the first line that is not a comment. errors: corrupt empty; overloaded too_many_columns
[[nodiscard]] Result<CsvColumns> csv_columns(ByteView bytes, std::string_view file, const ReadLimits& limits);

/// Parses a CSV file's bytes; `file` is its name in messages. Without options.label the label is the part note's.
///
/// errors  corrupt: ragged, not_a_number, not_finite, empty; invalid: bad_label, no_such_column, repeated_column,
///         label_out_of_range; overloaded: too many columns or values
[[nodiscard]] Result<Dataset> parse_csv(ByteView bytes, std::string_view file, const DataOptions& options,
                                        const ReadLimits& limits);

}  // namespace causeway
