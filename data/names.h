// Names as people mean them: of columns, classes, words and folders.
//
// The same name is written in several ways that look alike: an accent in the letter or behind it (a Mac's file names),
// spaces around it. Names are brought to one form when they are read, and only then compared. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

namespace causeway {

/// Without spaces at its ends (no-break spaces too), in Unicode's form NFC. Text that is not UTF-8 is only trimmed.
///
/// source  Unicode Standard Annex 15, by utf8proc
[[nodiscard]] std::string normal_name(std::string_view text);

/// Whether two normal names differ at most by the case of their letters.
[[nodiscard]] bool same_but_case(std::string_view one, std::string_view other);

}  // namespace causeway
