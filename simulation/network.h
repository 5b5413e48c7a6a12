// The virtual network: one link per client to the coordinator, each direction with its own delay, rate and failures.
//
// A connection keeps order in each direction and dies as a whole; what was under way is lost, as in wire/. What a
// direction can suffer: it is blocked (nothing gets through: cut cables, partitions, asymmetric routes), slow, or it
// corrupts a record, upon which the receiving channel closes with an error. Silence is noticed as a link thread would.
// Transfers run beside the control connection and go on from the last chunk in the next try. All bytes to and from
// clients also share the coordinator's own line.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "simulation/event_queue.h"
#include "wire/message.h"

namespace causeway::simulation {

using ConnectionId = std::uint64_t;  // rises, never reused; 0: none
enum class Side { client, coordinator };

struct Way {
    Duration delay = std::chrono::milliseconds(5);
    double rate = 12.5e6;  // bytes a second
};
struct LinkOptions {
    Way up;    // from the client
    Way down;  // to it
};
constexpr LinkOptions both_ways(Duration delay, double rate) {
    return {{delay, rate}, {delay, rate}};
}

/// The coordinator's line, shared by all; infinite unless said otherwise.
struct SharedLine {
    double rate_in = 0;  // bytes a second; 0: no limit
    double rate_out = 0;
};

constexpr Duration silence_bound = std::chrono::seconds(2);   // design: heartbeats every 500 ms, silent within 2 s
constexpr Duration give_up_bound = std::chrono::seconds(10);  // a stall this long ends the connection
constexpr Duration connect_bound = std::chrono::seconds(10);  // an attempt that is not answered by then has failed
constexpr std::uint64_t simulated_chunk = 64 * 1024;          // or a 16th of a long transfer, at most 1 MiB

class Network {
public:
    struct Sinks {
        std::function<bool()> listening;  // the coordinator is there
        std::function<void(std::size_t link)> connected;
        std::function<void(std::size_t link, const Error&)> disconnected;
        std::function<void(std::size_t link, const Message&)> to_client;
        std::function<void(std::size_t link, ConnectionId, const Message&)> to_coordinator;
        std::function<void(ConnectionId, const std::string& why)> closed;
        std::function<void(ConnectionId)> silent;
        std::function<void(ConnectionId)> heard;
    };

    Network(EventQueue& queue, std::vector<LinkOptions> links, SharedLine line, Sinks sinks);

    void connect(std::size_t link);
    void send(Side from, std::size_t link, Message message);
    /// The connection is lost: both sides learn it, each as soon as anything can reach it.
    void cut(std::size_t link, const std::string& why);
    /// That side is no longer there to learn it.
    void vanish(std::size_t link, Side gone);
    /// Nothing of this side gets through for so long.
    void block(std::size_t link, Side from, Duration how_long);
    /// Neither side's does.
    void stall(std::size_t link, Duration how_long);
    /// Delays and times on the wire are so many times as long, both ways.
    void slow_down(std::size_t link, double factor, Duration how_long);
    /// The next record of this side arrives damaged.
    void corrupt(std::size_t link, Side from) { way(link, from).corrupt_next = true; }
    /// Transfers under way lose their connection; the session stays.
    void break_transfers(std::size_t link) { ++links_[link].bulk; }
    /// When so many bytes of this side are through its line, if they may begin now: behind what is on its way there, so
    /// transfers and streams share it.
    Instant through_line(std::size_t link, Side from, std::uint64_t bytes);
    /// One way, as it is now.
    [[nodiscard]] Duration delay_of(std::size_t link, Side from) { return delay(link, from); }
    /// Moves bytes over the current connection, from `*at` (kept up to date for a later try) to `total`. Always
    /// answers, unless the receiver's life is over.
    void transfer(std::size_t link, Side from, std::uint64_t total, std::shared_ptr<std::uint64_t> at,
                  const Life& receiver, std::function<void(const Status&)> done);

    [[nodiscard]] LinkOptions link(std::size_t link) const {
        return {links_[link].up.options, links_[link].down.options};
    }
    [[nodiscard]] ConnectionId connection(std::size_t link) const { return links_[link].connection; }
    [[nodiscard]] std::uint64_t bytes_up() const { return bytes_up_; }
    [[nodiscard]] std::uint64_t bytes_down() const { return bytes_down_; }

private:
    struct Direction {
        Way options;
        std::deque<Message> under_way;
        Instant last_arrival{};
        Instant line_free{};  // of bulk; a message is short, and goes between
        Instant blocked_until{};
        bool corrupt_next = false;
    };
    struct Link {
        Direction up;
        Direction down;
        ConnectionId connection = 0;
        std::uint64_t tries = 0;  // of connecting; an older one's answer is not heard
        std::uint64_t bulk = 0;   // of bulk connections; an older one's transfers are lost
        Instant slow_until{};
        double slowness = 1;
        bool told_silent = false;
    };
    struct Transfer {
        std::size_t link = 0;
        Side from = Side::client;
        ConnectionId connection = 0;
        std::uint64_t bulk = 0;
        std::uint64_t total = 0;
        std::shared_ptr<std::uint64_t> at;
        const Life* receiver = nullptr;
        std::uint64_t life = 0;
        std::function<void(const Status&)> done;
    };

    Direction& way(std::size_t link, Side from) { return from == Side::client ? links_[link].up : links_[link].down; }
    [[nodiscard]] Duration delay(std::size_t link, Side from);
    [[nodiscard]] Duration time_on_the_wire(std::size_t link, Side from, std::uint64_t bytes);
    [[nodiscard]] Instant through_shared_line(Side from, std::uint64_t bytes);
    void answer_connect(std::size_t link, std::uint64_t attempt, Instant begun);
    void deliver(std::size_t link, Side from, ConnectionId connection);
    void end(std::size_t link, const std::string& why, bool tell_client, bool tell_coordinator);
    void notice_silence(std::size_t link, Side from, Instant until);
    void next_chunk(std::shared_ptr<Transfer> transfer);
    void finish(const std::shared_ptr<Transfer>& transfer, const Status& status);
    void count(Side from, std::uint64_t bytes) { (from == Side::client ? bytes_up_ : bytes_down_) += bytes; }

    EventQueue& queue_;
    std::vector<Link> links_;
    SharedLine line_;
    Instant line_in_free_{};
    Instant line_out_free_{};
    Sinks sinks_;
    ConnectionId last_connection_ = 0;
    std::uint64_t bytes_up_ = 0;
    std::uint64_t bytes_down_ = 0;
};

}  // namespace causeway::simulation
