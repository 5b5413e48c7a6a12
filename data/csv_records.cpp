// See csv_records.h. A record that is not whole in the block is looked at again with more text: blocks double with it,
// so that a long one is copied a few times at most.
#include "data/csv_records.h"

#include <algorithm>

#include <fmt/format.h>

namespace causeway {
namespace {

constexpr std::size_t record_block_bytes = 1 << 20;
constexpr std::size_t longest_record = 64 << 20;
constexpr std::size_t sample_bytes = 256 * 1024;  // what is looked at, however the file is read

}  // namespace

Result<std::size_t> CsvRecords::read_raw(std::span<std::byte> room) {
    if (stream_ == nullptr) {
        const auto count = std::min(room.size(), bytes_.size());
        std::copy_n(bytes_.begin(), count, room.begin());
        bytes_ = bytes_.subspan(count);
        return count;
    }
    std::size_t count = 0;
    while (count < room.size()) {
        TRY_ASSIGN(const auto more, stream_->read(room.subspan(count)));
        if (more == 0) {
            break;
        }
        count += more;
    }
    return count;
}

Status CsvRecords::refill(Encoding said) {
    if (text_.size() > longest_record) {
        return fail(ErrorKind::overloaded, "too_large",
                    fmt::format("{}, row {} (line {}): more than {} bytes; is a quote not closed?", file_, row_ + 1,
                                next_line_, longest_record));
    }
    raw_.resize(std::max(record_block_bytes, text_.size()));
    TRY_ASSIGN(const auto count, read_raw(raw_));
    ended_ = count < raw_.size();
    const auto bytes = ByteView(raw_).first(count);
    if (!decoder_) {
        // A part is UTF-8, whatever the table was that it was divided from.
        decoder_.emplace(is_part_note(as_text(bytes)) ? Encoding::utf8 : said, file_);
    }
    std::string next;
    next.reserve(text_.size() + count);
    next = text_;
    TRY(decoder_->decode(bytes, ended_, next));
    block_ = std::move(next);
    text_ = block_;
    return {};
}

/// Whether the text begins with a remark, which is taken.
Result<bool> CsvRecords::read_remark(Encoding said) {
    if (text_.empty() && !ended_) {
        TRY(refill(said));
    }
    if (!text_.starts_with('#')) {
        return false;
    }
    auto end = text_.find_first_of("\r\n");
    while (!ended_ && (end == std::string_view::npos || end + 1 == text_.size())) {
        TRY(refill());
        end = text_.find_first_of("\r\n");
    }
    end = std::min(end, text_.size());
    ++row_;
    line_ = next_line_++;
    if (const auto line = text_.substr(0, end); is_part_note(line)) {
        auto note = parse_part_note(line);
        if (!note) {
            return fail(with_context(std::move(note).error(), to_text(spot())));
        }
        note_ = *std::move(note);
        note_.found = true;
    }
    text_.remove_prefix(std::min(end + (text_.substr(end, 2) == "\r\n" ? 2 : 1), text_.size()));
    return true;
}

Status CsvRecords::begin(LookHints hints) {
    std::size_t remarks = 0;
    for (;;) {
        TRY_ASSIGN(const bool remark, read_remark(hints.said.encoding));
        if (!remark) {
            break;
        }
        ++remarks;
    }
    if (note_.found) {
        remarks = 0;
        hints.said = {
            .header = note_.header, .separator = ',', .encoding = Encoding::utf8, .decimal = '.', .quote = '"'};
    }
    TRY(find_form(hints));
    form_.remarks = remarks;
    form_.encoding = decoder_->encoding();
    return {};
}

Status CsvRecords::find_form(const LookHints& hints) {
    for (std::size_t wanted = sample_bytes;; wanted *= 2) {
        while (text_.size() < wanted && !ended_) {
            TRY(refill());
        }
        const bool final = ended_ && text_.size() <= wanted;
        TRY_ASSIGN(const auto form, look_at_csv(text_.substr(0, wanted), final, hints, file_));
        if (form) {
            form_ = *form;
            return {};
        }
    }
}

bool CsvRecords::is_blank(std::string_view text) const {
    const std::string_view blank = form_.marks.separator == '\t' ? " \r\n" : " \t\r\n";
    return text.find_first_not_of(blank) == std::string_view::npos;
}

Result<bool> CsvRecords::next() {
    for (;;) {
        while (!ended_ && is_blank(text_)) {
            TRY(refill());
        }
        if (is_blank(text_)) {
            return false;
        }
        const auto scan = scan_record(text_, form_.marks, ended_, cells_);
        if (scan.end == RecordScan::End::more) {
            TRY(refill());
            continue;
        }
        ++row_;
        line_ = next_line_;
        if (scan.end != RecordScan::End::whole) {
            return bad_quote(scan);
        }
        next_line_ += scan.lines;
        text_.remove_prefix(scan.taken);
        return true;
    }
}

tl::unexpected<Error> CsvRecords::bad_quote(const RecordScan& scan) const {
    const Spot place{file_, row_, scan.cell, line_ + scan.line};
    std::string what =
        "a quote stands inside a cell that does not begin with one: put the cell in quotes and double those "
        "in it, or say quote = \"none\" if quotes are signs like others";
    if (scan.end == RecordScan::End::after) {
        what = "text stands behind the closing quote: a quote inside a cell in quotes is written twice";
    } else if (scan.end == RecordScan::End::open) {
        what = "the quote that opens this cell is never closed";
    }
    return fail(ErrorKind::corrupt, "bad_quote", fmt::format("{}: {}", to_text(place), what));
}

}  // namespace causeway
