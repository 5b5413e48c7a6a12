// SIGINT, SIGTERM and SIGHUP as ordinary calls on a thread: daemons stop and reload by request, with all in order.
#pragma once

#include <functional>
#include <memory>

#include "common/time.h"

namespace causeway::cli {

/// How long a stop may take. systemd's unit allows 15 s; what is durable at that moment is all that a restart needs, so
/// a process that is stuck then ends without ceremony.
constexpr Duration stop_limit = std::chrono::seconds(8);

/// While it lives, the first SIGINT or SIGTERM calls `stop` once; a second one, or stop_limit, ends the process.
/// SIGHUP calls the function of on_hangup; until there is one, or where stderr is a terminal (which has gone away), it
/// stops like SIGTERM. Made before other threads start: they inherit the blocked signals.
class StopSignal {
public:
    explicit StopSignal(std::function<void()> stop);
    ~StopSignal();
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;
    /// The function to call from now on.
    void set(std::function<void()> stop);
    /// What SIGHUP does from now on.
    void on_hangup(std::function<void()> reload);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace causeway::cli
