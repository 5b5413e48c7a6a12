// Words of others as a terminal, a log or a table may show them.
//
// What a peer says ends on somebody's screen: an escape sequence in it could hide lines, rename the window or type at
// the shell, and a line break could forge a line of a log. Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace causeway {

enum class Lines { one, many };

/// Characters that do something instead of being seen: control characters (C0, DEL, C1), what else ends a line (U+2028,
/// U+2029), and marks that turn the direction of writing. source: Unicode Standard Annex 9, section 2
bool steers(char32_t point);

/// A character that ends a line, and a tab, becomes a space, any other that steers a `?`, and so does each byte that is
/// not UTF-8; with Lines::many `\n` and tab stay. The result is UTF-8 and never longer than what was given.
std::string printable(std::string_view text, Lines lines);

/// A JSON text in which characters beyond ASCII that steer stand as \uXXXX: the same values, and fit for a line of a
/// log. ASCII's own are escaped in any JSON text but DEL, which is escaped here.
std::string json_escaped(std::string_view json);

}  // namespace causeway
