// Both sides of a relay's turn in one thread: the real runs of a client's and a host's cell, with queues for streams.
//
// replay runs a turn to its end at once. In the virtual world a turn takes its time: when both sides have begun, it is
// computed, and its ends are told after the client's training time; if one of the two processes goes meanwhile, the
// other hears that the stream is lost, as a node does. Thread: one.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulation/event_queue.h"
#include "simulation/work.h"

namespace causeway::simulation {

/// The client's end and the host's. errors: of the side that failed first
Result<std::array<node::TurnOutput, 2>> run_turn(ClientWork& client, const Assign& client_assign, ClientWork& host,
                                                 const Assign& host_assign);

class TurnExchange {
public:
    using Done = std::function<void(Result<node::TurnOutput>)>;
    struct Side {
        std::string node;
        Assign assign;
        ClientWork* work = nullptr;
        double slowness = 1;
        Done done;
    };

    explicit TurnExchange(EventQueue& queue) : queue_(queue) {}

    void begin(Side side);
    /// The node does not want it any more; its peer hears nothing: the coordinator gives both another turn.
    void stop(const std::string& node, const Lease& lease);
    /// The node's process is gone, and with it its streams.
    void lose(const std::string& node);

private:
    using Key = std::array<std::uint64_t, 4>;  // of the lease
    static Key key_of(const Lease& lease) { return {lease.epoch, lease.experiment, lease.round, lease.attempt}; }

    EventQueue& queue_;
    std::map<Key, std::vector<Side>> under_way_;
};

}  // namespace causeway::simulation
