// Man pages, made from the tree of commands like help and completion, so that they never lag behind it: causeway(1)
// with every command, and a page per command, causeway-experiment-submit(1). Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/completion.h"

namespace causeway::cli {

struct ManualPage {
    std::string file;  // "causeway-token-new.1"
    std::string text;  // roff, macros of man(7)
};
/// causeway(1) first, then in the tree's order.
[[nodiscard]] std::vector<ManualPage> manual_pages(const CommandNode& root);

}  // namespace causeway::cli
