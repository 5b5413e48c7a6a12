// SIGINT and SIGTERM as an ordinary call on a thread: daemons stop by request, with everything in order.
#pragma once

#include <functional>
#include <memory>

namespace causeway::cli {

/// While it lives, the first SIGINT or SIGTERM calls `stop` once; a second one ends the process at once.
/// Made before other threads start: they inherit the blocked signals.
class StopSignal {
public:
    explicit StopSignal(std::function<void()> stop);
    ~StopSignal();
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;
    /// The function to call from now on.
    void set(std::function<void()> stop);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace causeway::cli
