// Following an experiment to its end, over as many sessions as that takes: a coordinator that is restarted or away for
// a while ends no command. Main thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/operator_session.h"
#include "cli/output.h"
#include "cli/stop_signal.h"

namespace causeway::cli {

/// Where a command follows an experiment, and for how long it waits for a coordinator that does not answer.
struct Following {
    std::unique_ptr<OperatorSession> session;
    std::string state;
    std::uint64_t id = 0;
    Duration reconnect{};
    Output output;
};

/// Ctrl-C ends the command and not the experiment, and from leave_running() on it says so. Made before other threads.
class FollowInterrupt {
public:
    explicit FollowInterrupt(Output output);
    void leave_running(std::uint64_t id, const std::string& state);

private:
    Output output_;
    StopSignal signal_;
};

/// The live view of it, from its first round; the exit code is the experiment's.
///
/// errors   disconnected `coordinator_away`: it has not answered for `reconnect`; the coordinator's own
Result<int> follow_experiment(Following following);

/// Waits for its end: the `done` event, or null when `patient` has said no before. errors: as follow_experiment
Result<Json> await_end(Following following, const std::function<bool()>& patient);

}  // namespace causeway::cli
