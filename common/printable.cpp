// See printable.h. By the bytes of UTF-8, so that nothing is decoded.
#include "common/printable.h"

#include <algorithm>

namespace causeway {
namespace {

struct Glyph {
    std::size_t bytes = 1;
    char32_t point = 0;
    bool valid = false;  // UTF-8 as RFC 3629 has it: no overlong form, no surrogate, nothing beyond U+10FFFF
};

/// What the text begins with; of what is not UTF-8 one byte.
Glyph first_glyph(std::string_view text) {
    const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const auto lead = at(0);
    if (lead < 0x80) {
        return {1, lead, true};
    }
    const std::size_t bytes = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    char32_t point = bytes == 2 ? lead & 0x1f : bytes == 3 ? lead & 0x0f : lead & 0x07;
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((at(i) & 0xc0) != 0x80) {
            return {};
        }
        point = point << 6 | (at(i) & 0x3f);
    }
    const char32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    return bytes == 0 || point < least || surrogate || point > 0x10ffff ? Glyph{} : Glyph{bytes, point, true};
}

bool ends_a_line(char32_t point) {
    return point == '\n' || point == '\r' || point == 0x85 || point == 0x2028 || point == 0x2029;
}

}  // namespace

bool steers(char32_t point) {
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x061c || point == 0x200e || point == 0x200f ||
           (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

std::string printable(std::string_view text, Lines lines) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        const auto glyph = first_glyph(text);
        const bool kept = lines == Lines::many && (glyph.point == '\n' || glyph.point == '\t');
        if (glyph.valid && (kept || !steers(glyph.point))) {
            shown += text.substr(0, glyph.bytes);
        } else {
            shown += glyph.valid && (ends_a_line(glyph.point) || glyph.point == '\t') ? ' ' : '?';
        }
        text.remove_prefix(glyph.bytes);
    }
    return shown;
}

std::string json_escaped(std::string_view json) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string escaped;
    escaped.reserve(json.size());
    while (!json.empty()) {
        const auto glyph = first_glyph(json);
        if (glyph.valid && glyph.point >= 0x7f && steers(glyph.point)) {
            escaped += "\\u";
            for (int shift = 12; shift >= 0; shift -= 4) {
                escaped += digits[glyph.point >> shift & 0xf];
            }
        } else {
            escaped += json.substr(0, glyph.bytes);
        }
        json.remove_prefix(glyph.bytes);
    }
    return escaped;
}

}  // namespace causeway
