// See csv_cells.h. Spaces around a cell are no part of it, also before its opening quote. A quote inside a cell without
// quotes is refused: programs read it in different ways.
#include "data/csv_cells.h"

namespace causeway {
namespace {

using End = RecordScan::End;

class RecordScanner {
public:
    RecordScanner(std::string_view text, CellMarks marks, bool final, std::vector<Cell>& cells)
        : text_(text), marks_(marks), final_(final), cells_(cells) {}

    RecordScan scan() {
        cells_.clear();
        for (;;) {
            skip_spaces();
            const bool quoted = marks_.quote != 0 && at_ < text_.size() && text_[at_] == marks_.quote;
            const End end = quoted ? take_quoted() : take_plain();
            if (end != End::whole) {
                return fault(end);
            }
            if (at_ >= text_.size()) {
                return final_ ? done() : fault(End::more);
            }
            if (text_[at_] == marks_.separator) {
                ++at_;
                continue;
            }
            return end_line();
        }
    }

private:
    [[nodiscard]] bool is_space(char c) const { return (c == ' ' || c == '\t') && c != marks_.separator; }

    void skip_spaces() {
        while (at_ < text_.size() && is_space(text_[at_])) {
            ++at_;
        }
    }

    End take_plain() {
        const auto begin = at_;
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == marks_.separator || c == '\n' || c == '\r') {
                break;
            }
            if (c == marks_.quote && c != 0) {
                return End::stray;
            }
        }
        auto end = at_;
        while (end > begin && is_space(text_[end - 1])) {
            --end;
        }
        cells_.push_back({text_.substr(begin, end - begin)});
        return End::whole;
    }

    End take_quoted() {
        const auto begin = ++at_;
        opened_ = lines_;
        bool doubled = false;
        for (;; ++at_) {
            if (at_ >= text_.size()) {
                return final_ ? End::open : End::more;
            }
            if (text_[at_] == '\n' || (text_[at_] == '\r' && text_.substr(at_ + 1, 1) != "\n")) {
                ++lines_;
            }
            if (text_[at_] != marks_.quote) {
                continue;
            }
            if (at_ + 1 >= text_.size() && !final_) {
                return End::more;  // the next byte says whether it is the closing one
            }
            if (text_.substr(at_ + 1, 1) != std::string_view(&marks_.quote, 1)) {
                break;
            }
            doubled = true;
            ++at_;
        }
        cells_.push_back({text_.substr(begin, at_ - begin), true, doubled});
        ++at_;
        skip_spaces();
        const bool ends =
            at_ >= text_.size() || text_[at_] == marks_.separator || text_[at_] == '\n' || text_[at_] == '\r';
        return ends ? End::whole : End::after;
    }

    /// A CR at the end of what is there may be half of a CRLF.
    RecordScan end_line() {
        const bool cr = text_[at_] == '\r';
        if (cr && at_ + 1 >= text_.size() && !final_) {
            return fault(End::more);
        }
        at_ += cr && text_.substr(at_ + 1, 1) == "\n" ? 2 : 1;
        ++lines_;
        return done();
    }

    [[nodiscard]] RecordScan done() const { return {End::whole, at_, lines_, 0, 0}; }
    [[nodiscard]] RecordScan fault(End end) const {
        const bool counted = end == End::after;  // the cell is in the list already
        return {end, at_, lines_, cells_.size() + (counted ? 0 : 1), end == End::open ? opened_ : lines_};
    }

    std::string_view text_;
    CellMarks marks_;
    bool final_;
    std::vector<Cell>& cells_;
    std::size_t at_ = 0;
    std::size_t lines_ = 0;
    std::size_t opened_ = 0;  // line of the last opening quote
};

}  // namespace

std::string cell_text(const Cell& cell, char quote) {
    if (!cell.doubled) {
        return std::string(cell.text);
    }
    std::string text;
    for (std::size_t i = 0; i < cell.text.size(); ++i) {
        text += cell.text[i];
        i += cell.text[i] == quote ? 1 : 0;
    }
    return text;
}

RecordScan scan_record(std::string_view text, CellMarks marks, bool final, std::vector<Cell>& cells) {
    return RecordScanner(text, marks, final, cells).scan();
}

}  // namespace causeway
