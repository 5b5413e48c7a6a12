// A start on a full disk waits for room, as a daemon that runs does: "the work goes on by itself" is true of both.
#pragma once

#include <functional>

#include "common/log.h"
#include "common/queue.h"
#include "common/time.h"

namespace causeway::cli {

constexpr Duration room_interval = std::chrono::seconds(1);

/// Tries until it ends otherwise than for want of room on the disk; the first such end is logged.
///
/// errors   start's, all but `disk_full`
template <class Start>
auto start_with_room(Start start) -> decltype(start()) {
    BoundedQueue<int> nothing(1);
    for (bool said = false;; said = true) {
        auto started = start();
        if (started || started.error().code != "disk_full") {
            return started;
        }
        if (!said) {
            log_warn("service", started.error().message + " (this start waits for it)");
        }
        (void)nothing.pop_for(room_interval);
    }
}

}  // namespace causeway::cli
