// Hexadecimal and base64url: strict in both directions, so that one value has one spelling.
#include "common/bytes.h"

namespace causeway {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr std::string_view url_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int digit_value(std::string_view digits, char c) {
    const auto at = digits.find(c);
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

std::string to_hex(ByteView bytes) {
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const auto byte : bytes) {
        text += hex_digits[static_cast<unsigned>(byte) >> 4];
        text += hex_digits[static_cast<unsigned>(byte) & 15];
    }
    return text;
}

Result<Bytes> from_hex(std::string_view text) {
    Bytes bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        const int high = digit_value(hex_digits, text[i]);
        const int low = digit_value(hex_digits, text[i + 1]);
        if (high < 0 || low < 0) {
            return fail(ErrorKind::corrupt, "bad_hex", "not a string of hexadecimal digits (0-9, a-f)");
        }
        bytes.push_back(static_cast<std::byte>(high * 16 + low));
    }
    if (text.size() % 2 != 0) {
        return fail(ErrorKind::corrupt, "bad_hex", "a string of hexadecimal digits has an odd length");
    }
    return bytes;
}

std::string to_base64url(ByteView bytes) {
    std::string text;
    unsigned bits = 0;
    int held = 0;
    for (const auto byte : bytes) {
        bits = bits << 8 | static_cast<unsigned>(byte);
        for (held += 8; held >= 6; held -= 6) {
            text += url_digits[bits >> (held - 6) & 63];
        }
    }
    if (held > 0) {
        text += url_digits[bits << (6 - held) & 63];
    }
    return text;
}

Result<Bytes> from_base64url(std::string_view text) {
    Bytes bytes;
    unsigned bits = 0;
    int held = 0;
    for (const char c : text) {
        const int value = digit_value(url_digits, c);
        if (value < 0) {
            return fail(ErrorKind::corrupt, "bad_base64", "a character does not belong to base64url");
        }
        bits = (bits << 6 | static_cast<unsigned>(value)) & 0xffff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes.push_back(static_cast<std::byte>(bits >> held & 0xff));
        }
    }
    if (held >= 6 || (bits & ((1u << held) - 1)) != 0) {
        return fail(ErrorKind::corrupt, "bad_base64", "the text is cut off or was changed");
    }
    return bytes;
}

}  // namespace causeway
