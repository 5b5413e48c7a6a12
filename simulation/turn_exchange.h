// All sides of a relay's turn in one thread: the real runs of a client's (or of several clients') and a host's cell,
// with queues for streams.
//
// replay runs a turn to its end at once. In the virtual world a turn takes its time: when all sides have begun, it is
// computed, and its ends are told after the slowest client's training time; if one of the processes goes meanwhile, its
// peers hear that the stream is lost, as a node does. Thread: one.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulation/event_queue.h"
#include "simulation/work.h"

namespace causeway::simulation {

/// One side of a turn; a host's has a peer for each of the others.
struct TurnSide {
    ClientWork* work = nullptr;
    Assign assign;
};
/// Which side failed first, why, and whose doing it was.
struct TurnFailure {
    std::size_t side = 0;
    Error error;
    std::string peer{};
};
/// The sides' ends, in their order.
tl::expected<std::vector<node::TurnOutput>, TurnFailure> run_turn(const std::vector<TurnSide>& sides);

class TurnExchange {
public:
    using Done = std::function<void(node::TurnEnd)>;
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
    static bool complete(const std::vector<Side>& sides);
    static Key key_of(const Lease& lease) { return {lease.epoch, lease.experiment, lease.round, lease.attempt}; }

    EventQueue& queue_;
    std::map<Key, std::vector<Side>> under_way_;
};

}  // namespace causeway::simulation
