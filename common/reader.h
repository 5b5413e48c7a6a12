// Whether whoever reads our output keeps up: a log that nobody reads must never stop a daemon.
//
// A pipe or terminal that is full makes write() wait, and with it the thread that says something, be it the one that
// keeps a lease alive. For a pipe "writable" means room for PIPE_BUF bytes, which is more than a line has.
#pragma once

#include <poll.h>

namespace causeway {

/// Whether a line can be written to this descriptor without waiting. False when nobody reads it any more.
///
/// threads  thread-safe
inline bool takes_a_line(int descriptor) {
    pollfd asked{descriptor, POLLOUT, 0};
    return poll(&asked, 1, 0) == 1 && (asked.revents & (POLLOUT | POLLERR | POLLHUP | POLLNVAL)) == POLLOUT;
}

}  // namespace causeway
