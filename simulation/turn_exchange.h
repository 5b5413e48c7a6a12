// All sides of a relay's turn in one thread: the real runs of a client's (or of several clients') and a host's cell,
// with queues for streams.
//
// replay runs a turn to its end at once. In the virtual world a turn takes its time: each side begins when its node
// does, and what it does is played on the clock; when all have begun, it is computed. Each node has one trainer, which
// takes up what has come in the order of its coming, whichever turn it is for, and stops where the program waits for
// more: so groups wait for each other at their host. What is sent goes through the sender's line and the receiver's,
// behind what is on its way there. If one of the processes goes meanwhile, its peers hear that the stream is lost, as a
// node does. Thread: one.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
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
struct TurnRun {
    std::vector<node::TurnOutput> ends;  // in the sides' order
};
tl::expected<TurnRun, TurnFailure> run_turn(const std::vector<TurnSide>& sides);

class TurnExchange {
public:
    using Done = std::function<void(node::TurnEnd)>;
    struct Side {
        std::string node;
        std::size_t link = 0;
        Assign assign;
        ClientWork* work = nullptr;
        double slowness = 1;
        Done done;
    };

    TurnExchange(EventQueue& queue, Network& network) : queue_(queue), network_(network) {}

    void begin(Side side);
    /// The node does not want it any more; its peer hears nothing: the coordinator gives both another turn.
    void stop(const std::string& node, const Lease& lease);
    /// The node's process is gone, and with it its streams.
    void lose(const std::string& node);

private:
    using Key = std::array<std::uint64_t, 4>;  // of the lease
    struct Turn;
    /// Something that has come for a side of a turn: its beginning, or a message.
    struct Item {
        Key key{};
        std::uint64_t number = 0;  // of the turn: a later one of the same lease is another
        std::size_t side = 0;
        const CellAct* message = nullptr;  // as its sender has it; nullptr: the beginning
        std::uint32_t from = 0;            // cell
    };
    /// A message for a side that has not begun, when it would be there.
    struct Early {
        Item item;
        std::uint32_t to = 0;  // cell
        Instant when{};
    };
    /// A process with its one trainer.
    struct Trainer {
        std::deque<Item> waiting;
        std::uint64_t life = 0;
        bool at_work = false;
    };

    static Key key_of(const Lease& lease) { return {lease.epoch, lease.experiment, lease.round, lease.attempt}; }
    void compute(const Key& key, Turn& turn);
    std::shared_ptr<Turn> find(const Item& item);
    void give(const Item& item);
    void work(const std::string& node);
    void go_on(const Item& item, Turn& turn);
    void send(const Item& item, std::size_t message);
    void arrive_at(Instant when, const Item& item);
    void end(const Item& item);

    EventQueue& queue_;
    Network& network_;
    std::uint64_t turns_ = 0;
    std::map<Key, std::shared_ptr<Turn>> under_way_;
    std::map<std::string, Trainer> trainers_;
};

}  // namespace causeway::simulation
