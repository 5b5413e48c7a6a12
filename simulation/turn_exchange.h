// All sides of a relay's turn in one thread: the real runs of a client's (or of several clients') and a host's cell,
// with queues for streams.
//
// replay runs a turn to its end at once. In the virtual world a turn takes its time: when all sides have begun, it is
// computed, and its ends are told when the slowest client is through: its training, and what it sent and got over its
// own link, one after the other (with an overlap that is the most it can take; a host's link is not looked at). If one
// of the processes goes meanwhile, its peers hear that the stream is lost, as a node does. Thread: one.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulation/event_queue.h"
#include "simulation/network.h"
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
/// What went one way over a side's streams.
struct TurnTraffic {
    std::uint64_t bytes = 0;
    std::uint64_t messages = 0;
};
struct TurnRun {
    std::vector<node::TurnOutput> ends;  // in the sides' order, like the others
    std::vector<TurnTraffic> sent;
    std::vector<TurnTraffic> received;
};
tl::expected<TurnRun, TurnFailure> run_turn(const std::vector<TurnSide>& sides);

class TurnExchange {
public:
    using Done = std::function<void(node::TurnEnd)>;
    struct Side {
        std::string node;
        Assign assign;
        ClientWork* work = nullptr;
        double slowness = 1;
        LinkOptions link;
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
    static double time_of(const std::vector<Side>& sides, const TurnRun& run);
    static bool complete(const std::vector<Side>& sides);
    static Key key_of(const Lease& lease) { return {lease.epoch, lease.experiment, lease.round, lease.attempt}; }

    EventQueue& queue_;
    std::map<Key, std::vector<Side>> under_way_;
};

}  // namespace causeway::simulation
