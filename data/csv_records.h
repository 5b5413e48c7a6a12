// The records of a table, one after another, from a file of any size and encoding: what is held is a block of its text.
//
// The first lines that begin with '#' are remarks; then the form is found (data/csv_look.h), and every record is known
// by its number and by the line in which it begins. Thread: one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "data/csv_look.h"
#include "data/number.h"
#include "data/part_note.h"
#include "data/text_decoder.h"
#include "data/text_stream.h"

namespace causeway {

class CsvRecords {
public:
    /// `bytes` or `stream`, and `file`, must outlive this.
    CsvRecords(ByteView bytes, std::string_view file) : bytes_(bytes), file_(file) {}
    CsvRecords(TextStream& stream, std::string_view file) : stream_(&stream), file_(file) {}

    /// Reads the remarks and finds the form. A part that Causeway wrote has its own, whatever `hints` say.
    ///
    /// errors   those of look_at_csv, of TextDecoder and of TextStream; corrupt `bad_note`
    [[nodiscard]] Status begin(LookHints hints);
    /// Goes to the next record; false at the end. Blank lines at the very end are none.
    ///
    /// errors   corrupt `bad_quote`; overloaded `too_large`: a record of more than 64 MiB; those of the source
    [[nodiscard]] Result<bool> next();

    [[nodiscard]] const CsvForm& form() const { return form_; }
    [[nodiscard]] const PartNote& note() const { return note_; }
    /// Of the current record; views until next().
    [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }
    [[nodiscard]] std::size_t row() const { return row_; }    // from 1; remarks and header count
    [[nodiscard]] std::size_t line() const { return line_; }  // from 1
    /// The place of a cell of the current record, from 1; 0: of the record.
    [[nodiscard]] Spot spot(std::size_t column = 0) const { return {file_, row_, column, line_}; }
    /// See TextStream; 1 for bytes.
    [[nodiscard]] double progress() const { return stream_ == nullptr ? 1.0 : stream_->progress(); }

private:
    Result<std::size_t> read_raw(std::span<std::byte> room);
    Status refill(Encoding said);
    Status refill() { return refill(Encoding::look); }
    Result<bool> read_remark(Encoding said);
    Status find_form(const LookHints& hints);
    [[nodiscard]] bool is_blank(std::string_view text) const;
    [[nodiscard]] tl::unexpected<Error> bad_quote(const RecordScan& scan) const;

    ByteView bytes_;
    TextStream* stream_ = nullptr;
    std::string_view file_;
    std::optional<TextDecoder> decoder_;
    Bytes raw_;              // the last block of the file
    std::string block_;      // what text_ shows
    std::string_view text_;  // decoded, and not yet taken
    bool ended_ = false;     // nothing follows text_
    CsvForm form_;
    PartNote note_;
    std::vector<Cell> cells_;
    std::size_t row_ = 0;
    std::size_t line_ = 0;
    std::size_t next_line_ = 1;
};

}  // namespace causeway
