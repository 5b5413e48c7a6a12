// See text_decoder.h. UTF-8 is checked everywhere, also in columns that nobody uses: a file that is not what it seems
// would otherwise show only where a name has an accent, and at one node of several.
#include "data/text_decoder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace causeway {
namespace {

constexpr std::size_t mark_bytes = 8;  // enough to know every mark, archive and pattern of zeros

/// 0x80 to 0x9f of cp1252; 0: not defined.
constexpr std::array<std::uint16_t, 32> cp1252{0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                               0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017D, 0,
                                               0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                               0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

void append_code(std::uint32_t code, std::string& text) {
    const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xc0 | code >> 6);
        tail(0);
    } else if (code < 0x10000) {
        text += static_cast<char>(0xe0 | code >> 12);
        tail(6);
        tail(0);
    } else {
        text += static_cast<char>(0xf0 | code >> 18);
        tail(12);
        tail(6);
        tail(0);
    }
}

/// How many bytes the character at `at` has; 0: it is none; -1: the text ends inside it. Table 3-7 of the standard.
int character_bytes(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
    const unsigned first = byte(0);
    const int size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    for (int i = 1; i < size; ++i) {
        if (at + static_cast<std::size_t>(i) >= text.size()) {
            return -1;
        }
        const unsigned next = byte(static_cast<std::size_t>(i));
        const unsigned least = i == 1 && first == 0xe0 ? 0xa0 : i == 1 && first == 0xf0 ? 0x90 : 0x80;
        const unsigned most = i == 1 && first == 0xed ? 0x9f : i == 1 && first == 0xf4 ? 0x8f : 0xbf;
        if (next < least || next > most) {
            return 0;
        }
    }
    return size;
}

/// The length of the part that is whole characters; `wrong`: a byte there begins none.
std::size_t valid_part(std::string_view text, bool& wrong) {
    std::size_t at = 0;
    while (at < text.size()) {
        std::uint64_t eight = 0;
        if (at + sizeof eight <= text.size()) {
            std::memcpy(&eight, text.data() + at, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        const int size = character_bytes(text, at);
        wrong = size == 0;
        if (size <= 0) {
            return at;
        }
        at += static_cast<std::size_t>(size);
    }
    return at;
}

std::string_view archive_name(std::string_view bytes) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> known{
        {{"PK\x03\x04", "a ZIP archive or an Excel workbook"},
         {"\xD0\xCF\x11\xE0", "an old Excel workbook"},
         {"BZh", "packed by bzip2"},
         {"\xFD\x37zXZ", "packed by xz"},
         {"\x28\xB5\x2F\xFD", "packed by zstd"},
         {"\x1f\x8b", "packed twice by gzip"},
         {"PAR1", "a Parquet file"}}};
    const auto found = std::ranges::find_if(known, [&](const auto& entry) { return bytes.starts_with(entry.first); });
    return found == known.end() ? std::string_view() : found->second;
}

struct TextMark {
    Encoding encoding;
    std::string_view bytes;
};
constexpr std::array<TextMark, 3> text_marks{
    {{Encoding::utf8, "\xEF\xBB\xBF"}, {Encoding::utf16le, "\xFF\xFE"}, {Encoding::utf16be, "\xFE\xFF"}}};

/// Text of Latin letters in UTF-16 has a zero in every second byte.
Encoding utf16_without_mark(std::string_view head) {
    if (head.size() < 4) {
        return Encoding::look;
    }
    const bool low = head[0] != 0 && head[1] == 0 && head[2] != 0 && head[3] == 0;
    const bool high = head[0] == 0 && head[1] != 0 && head[2] == 0 && head[3] != 0;
    return low ? Encoding::utf16le : high ? Encoding::utf16be : Encoding::look;
}

}  // namespace

tl::unexpected<Error> TextDecoder::wrong(std::string_view text_before, std::string_view what) const {
    const auto line = lines_ + static_cast<std::size_t>(std::ranges::count(text_before, '\n')) + 1;
    return fail(ErrorKind::corrupt, "bad_encoding", fmt::format("{}, line {}: {}", file_, line, what));
}

/// The first bytes decide.
Status TextDecoder::begin() {
    const std::string_view head = std::string_view(rest_).substr(0, mark_bytes);
    if (const auto archive = archive_name(head); !archive.empty()) {
        return fail(ErrorKind::unsupported, "unknown_format",
                    fmt::format("{}: this is {}, no text: unpack it, or save the table as CSV", file_, archive));
    }
    constexpr std::string_view utf32("\xFF\xFE\0\0", 4);
    if (head.starts_with(utf32) || head.starts_with(std::string_view("\0\0\xFE\xFF", 4))) {
        return fail(ErrorKind::unsupported, "bad_encoding",
                    fmt::format("{}: the text is UTF-32, which is not read: save it as UTF-8", file_));
    }
    for (const auto& mark : text_marks) {
        if (head.starts_with(mark.bytes)) {
            if (said_ != Encoding::look && said_ != mark.encoding) {
                return fail(ErrorKind::invalid, "bad_encoding",
                            fmt::format("{}: encoding = \"{}\", but the file begins with the byte-order mark of {}: "
                                        "leave encoding out",
                                        file_, encoding_word(said_), encoding_word(mark.encoding)));
            }
            encoding_ = mark.encoding;
            rest_.erase(0, mark.bytes.size());
            return {};
        }
    }
    if (const auto found = utf16_without_mark(head); said_ == Encoding::look && found != Encoding::look) {
        return fail(ErrorKind::invalid, "bad_encoding",
                    fmt::format("{}: every second byte is zero: this seems to be UTF-16 without its byte-order mark. "
                                "Say encoding = \"{}\", or save it as UTF-8",
                                file_, encoding_word(found)));
    }
    encoding_ = said_ == Encoding::look ? Encoding::utf8 : said_;
    return {};
}

Status TextDecoder::decode(ByteView bytes, bool last, std::string& text) {
    rest_ += as_text(bytes);
    if (encoding_ == Encoding::look) {
        if (rest_.size() < mark_bytes && !last) {
            return {};
        }
        TRY(begin());
    }
    const auto before = text.size();
    TRY(encoding_ == Encoding::utf8                                        ? decode_utf8(last, text)
        : encoding_ == Encoding::utf16le || encoding_ == Encoding::utf16be ? decode_utf16(last, text)
                                                                           : decode_bytes(text));
    const auto added = std::string_view(text).substr(before);
    if (const auto zero = added.find('\0'); zero != std::string_view::npos) {
        return wrong(added.substr(0, zero), "there is a zero byte: this is no text");
    }
    lines_ += static_cast<std::size_t>(std::ranges::count(added, '\n'));
    return {};
}

Status TextDecoder::decode_utf8(bool last, std::string& text) {
    bool is_wrong = false;
    const auto whole = valid_part(rest_, is_wrong);
    if (is_wrong || (last && whole < rest_.size())) {
        return wrong(
            std::string_view(rest_).substr(0, whole),
            fmt::format("the byte {:02X} is no UTF-8 text. If a Windows program wrote the file, say encoding = "
                        "\"cp1252\"; \"latin-1\" is read too; or save it as UTF-8",
                        static_cast<unsigned char>(rest_[whole])));
    }
    text.append(rest_, 0, whole);
    rest_.erase(0, whole);
    return {};
}

Status TextDecoder::decode_utf16(bool last, std::string& text) {
    const auto before = text.size();
    const auto unit = [&](std::size_t at) {
        const auto one = static_cast<unsigned char>(rest_[at]), two = static_cast<unsigned char>(rest_[at + 1]);
        return static_cast<std::uint32_t>(encoding_ == Encoding::utf16be ? one << 8 | two : two << 8 | one);
    };
    std::size_t at = 0;
    while (at + 2 <= rest_.size()) {
        const auto code = unit(at);
        if (code < 0xd800 || code > 0xdfff) {
            append_code(code, text);
            at += 2;
            continue;
        }
        if (at + 4 > rest_.size() && !last) {
            break;
        }
        const auto low = at + 4 <= rest_.size() ? unit(at + 2) : 0;
        if (code > 0xdbff || low < 0xdc00 || low > 0xdfff) {
            return wrong(std::string_view(text).substr(before), "half a character of UTF-16 stands alone");
        }
        append_code(0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00)), text);
        at += 4;
    }
    rest_.erase(0, at);
    return last && !rest_.empty() ? wrong(std::string_view(text).substr(before), "the text ends inside a character")
                                  : Status();
}

Status TextDecoder::decode_bytes(std::string& text) {
    const auto before = text.size();
    for (const char c : rest_) {
        const auto byte = static_cast<unsigned char>(c);
        const bool special = encoding_ == Encoding::cp1252 && byte >= 0x80 && byte < 0xa0;
        const std::uint32_t code = special ? cp1252[byte - 0x80] : byte;
        if (special && code == 0) {
            return wrong(std::string_view(text).substr(before),
                         fmt::format("the byte {:02X} is no text in cp1252: it may be \"latin-1\" or \"utf-8\"", byte));
        }
        append_code(code, text);
    }
    rest_.clear();
    return {};
}

}  // namespace causeway
