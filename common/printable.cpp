// See printable.h. By the bytes of UTF-8, so that nothing is decoded.
#include "common/printable.h"

#include <algorithm>

namespace causeway {
namespace {

/// Bytes of the control character that the text begins with; 0: none. Of UTF-8: C0 and C1, and the two ranges of marks
/// that order what follows from right to left.
std::size_t control_bytes(std::string_view text) {
    const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    if (at(0) < 0x20 || at(0) == 0x7f) {
        return 1;
    }
    if (at(0) == 0xc2 && at(1) >= 0x80 && at(1) < 0xa0) {
        return 2;
    }
    const bool turns = at(0) == 0xe2 && ((at(1) == 0x80 && at(2) >= 0xaa && at(2) <= 0xae) ||
                                         (at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9));
    return turns ? 3 : 0;
}

}  // namespace

std::string printable(std::string_view text, Lines lines) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        const auto size = control_bytes(text);
        const bool breaks = text.front() == '\n' || text.front() == '\t';
        const bool blank = text.front() == '\r' || (breaks && lines == Lines::one);
        if (size == 0 || (breaks && !blank)) {
            shown += text.front();
        } else {
            shown += blank ? ' ' : '?';
        }
        text.remove_prefix(std::max<std::size_t>(size, 1));
    }
    return shown;
}

}  // namespace causeway
