// Trying again while this machine fails (disk full): what must be stored is stored when there is room again.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>

#include "common/log.h"
#include "common/queue.h"
#include "common/result.h"

namespace causeway {

/// threads  until_done on one thread; stop from any
class Retry {
public:
    /// Repeats `attempt` every second as long as it fails with `io`; the first failure is logged.
    ///
    /// errors   the attempt's own, when not io; refused `stopped`
    Status until_done(std::string_view who, const std::function<Status()>& attempt) {
        auto done = attempt();
        for (bool first = true; !done && done.error().kind == ErrorKind::io; first = false) {
            if (first) {
                log_error(who, done.error().message + "; trying again until it works");
            }
            (void)pauses_.pop_for(pause);
            if (stopping_) {
                return fail(ErrorKind::refused, "stopped", "the process ends");
            }
            done = attempt();
        }
        return done;
    }
    void stop() {
        stopping_ = true;
        pauses_.close();
    }

private:
    static constexpr Duration pause = std::chrono::seconds(1);

    std::atomic<bool> stopping_{false};
    BoundedQueue<int> pauses_{1};  // nothing ever comes: waiting on it is a pause, closing it ends the pause
};

}  // namespace causeway
