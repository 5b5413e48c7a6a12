// One record of a table taken into cells, as RFC 4180 says: a cell in quotes may hold separators, quotes (doubled) and
// line breaks, wherever it stands; outside of quotes LF, CRLF and CR each end a record. Pure, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace causeway {

struct Cell {
    std::string_view text;  // without outer spaces and quotes; doubled quotes are still doubled
    bool quoted = false;
    bool doubled = false;  // it holds doubled quotes
};

/// The cell's text with each doubled quote once.
[[nodiscard]] std::string cell_text(const Cell& cell, char quote);

struct CellMarks {
    char separator = ',';
    char quote = '"';  // 0: none
};

struct RecordScan {
    enum class End {
        whole,  // a record
        more,   // the text ends before the record does; never when it is final
        stray,  // a quote inside a cell that does not begin with one
        after,  // text behind a closing quote
        open,   // a quote that is never closed
    };
    End end = End::whole;
    std::size_t taken = 0;  // bytes of the record and its line break
    std::size_t lines = 0;  // line breaks among them
    // Where a fault is: the cell counts from 1, the line from 0 in the record. Of `open` the opening quote's.
    std::size_t cell = 0;
    std::size_t line = 0;
};

/// Reads one record from the front of `text`. `final`: no more text follows. Cells are views of `text`.
///
/// cost  one pass over the record
[[nodiscard]] RecordScan scan_record(std::string_view text, CellMarks marks, bool final, std::vector<Cell>& cells);

}  // namespace causeway
