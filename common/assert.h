// ASSERT: for our own bugs, never for what a peer, a file or a user sent. Always on, also in release builds.
#pragma once

namespace causeway {

/// Prints where and what was broken and stops the process.
///
/// threads  thread-safe
[[noreturn]] void assertion_failed(const char* file, int line, const char* condition);

}  // namespace causeway

#define ASSERT(condition)                                                 \
    do {                                                                  \
        if (!(condition)) {                                               \
            ::causeway::assertion_failed(__FILE__, __LINE__, #condition); \
        }                                                                 \
    } while (false)
