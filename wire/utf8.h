// Whether a peer's text is UTF-8: what is not would break the JSON that it ends up in.
//
// As strict as RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.
// Thread: any.
#pragma once

#include <string_view>

namespace causeway {

inline bool is_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const std::size_t tail = lead < 0x80   ? 0
                                 : lead < 0xC2 ? 4
                                 : lead < 0xE0 ? 1
                                 : lead < 0xF0 ? 2
                                 : lead < 0xF5 ? 3
                                               : 4;
        if (tail == 4 || i + tail >= text.size()) {
            return false;
        }
        for (std::size_t k = 1; k <= tail; ++k) {
            const auto byte = static_cast<unsigned char>(text[i + k]);
            // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF.
            const unsigned low = k > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
            const unsigned high = k > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
            if (byte < low || byte > high) {
                return false;
            }
        }
        i += tail + 1;
    }
    return true;
}

}  // namespace causeway
