// Words of others as a terminal, a log or a table may show them.
//
// What a peer says ends on somebody's screen: an escape sequence in it could hide lines, rename the window or type at
// the shell, and a line break could forge a line of a log. Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace causeway {

enum class Lines { one, many };

/// Every control character, and every mark that turns the direction of writing, becomes a `?`; a return, and where one
/// line is wanted a line break or tab, a space. UTF-8 stays UTF-8 and never gets longer.
std::string printable(std::string_view text, Lines lines);

}  // namespace causeway
