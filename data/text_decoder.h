// A table's bytes as UTF-8, whatever they were: UTF-8 and UTF-16 by their mark or by what is said, cp1252 and latin-1
// where they are said. Of eight-bit encodings nobody can tell by looking which one it is, so none is guessed.
#pragma once

#include <string>

#include "common/bytes.h"
#include "data/table_form.h"

namespace causeway {

/// Bytes come in any pieces. threads  one owner at a time
class TextDecoder {
public:
    /// `file` is for messages, and must outlive this.
    TextDecoder(Encoding said, std::string_view file) : said_(said), file_(file) {}

    /// Appends what the bytes mean to `text`; the byte-order mark is no part of it. `last`: nothing follows them.
    ///
    /// errors  corrupt `bad_encoding`: bytes that are no text in the encoding, with their line and the remedy;
    ///         invalid `bad_encoding`: the mark contradicts what is said; unsupported `unknown_format`: an archive
    [[nodiscard]] Status decode(ByteView bytes, bool last, std::string& text);

    /// What it was found to be; `look` before the first bytes.
    [[nodiscard]] Encoding encoding() const { return encoding_; }

private:
    Status begin();
    Status decode_utf8(bool last, std::string& text);
    Status decode_utf16(bool last, std::string& text);
    Status decode_bytes(std::string& text);
    [[nodiscard]] tl::unexpected<Error> wrong(std::string_view text_before, std::string_view what) const;

    Encoding said_;
    std::string_view file_;
    Encoding encoding_ = Encoding::look;
    std::string rest_;       // bytes that are not decoded yet: at most a piece and a character
    std::size_t lines_ = 0;  // line feeds of the text so far
};

}  // namespace causeway
