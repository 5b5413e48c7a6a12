// See names.h. The only file that sees utf8proc. Most names are ASCII, for which nothing has to be asked.
#include "data/names.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <utf8proc.h>

#include "common/text.h"

namespace causeway {
namespace {

bool is_ascii(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

char lower_ascii(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

/// Empty when the text is not UTF-8.
std::string mapped_name(std::string_view text, int how) {
    utf8proc_uint8_t* result = nullptr;
    const auto size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                     &result, static_cast<utf8proc_option_t>(how | UTF8PROC_STABLE));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, std::free);
    return size < 0 ? std::string()
                    : std::string(reinterpret_cast<const char*>(result), static_cast<std::size_t>(size));
}

std::string_view without_ends(std::string_view text) {
    constexpr std::string_view no_break = "\xC2\xA0";
    for (;;) {
        const auto before = text.size();
        text = trim(text);
        if (text.starts_with(no_break)) {
            text.remove_prefix(no_break.size());
        }
        if (text.ends_with(no_break)) {
            text.remove_suffix(no_break.size());
        }
        if (text.size() == before) {
            return text;
        }
    }
}

}  // namespace

std::string normal_name(std::string_view text) {
    text = without_ends(text);
    if (is_ascii(text)) {
        return std::string(text);
    }
    auto normal = mapped_name(text, UTF8PROC_COMPOSE);
    return normal.empty() ? std::string(text) : normal;
}

bool same_but_case(std::string_view one, std::string_view other) {
    if (is_ascii(one) && is_ascii(other)) {
        return std::ranges::equal(one, other, {}, lower_ascii, lower_ascii);
    }
    return one == other || mapped_name(one, UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD) ==
                               mapped_name(other, UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
}

}  // namespace causeway
