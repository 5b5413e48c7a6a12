// The one way this program stops on its own bug: it says what was broken and aborts, so that a core dump shows where.
#include "common/assert.h"

#include <cstdio>
#include <cstdlib>

namespace causeway {

void assertion_failed(const char* file, int line, const char* condition) {
    std::fprintf(stderr, "%s:%d: broken: %s\nThis is a bug in Causeway; please report the line above.\n", file, line,
                 condition);
    std::abort();
}

}  // namespace causeway
