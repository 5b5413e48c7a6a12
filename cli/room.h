// A start on a full disk waits for room, as a daemon that runs does: "the work goes on by itself" is true of both.
#pragma once

#include <functional>

#include "common/log.h"
#include "common/queue.h"
#include "common/time.h"

namespace causeway::cli {

constexpr Duration room_interval = std::chrono::seconds(1);

/// Tries until it ends otherwise than for want of room on the disk; the first such end is logged. A first start, with
/// nothing that could go on (`goes_on` is false), ends at once with that error.
///
/// errors   start's, and `disk_full` of a first start alone
template <class Start>
auto start_with_room(Start start, bool goes_on) -> decltype(start()) {
    BoundedQueue<int> nothing(1);
    for (bool said = false;; said = true) {
        auto started = start();
        if (started || !goes_on || started.error().code != "disk_full") {
            return started;
        }
        if (!said) {
            log_warn("service", started.error().message + " (this start waits for it)");
        }
        (void)nothing.pop_for(room_interval);
    }
}

}  // namespace causeway::cli
