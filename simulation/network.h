// The virtual network: one link per client to the coordinator, with delay, rate, lost connections and stalls.
//
// A connection keeps order in each direction and dies as a whole; what was under way is lost, as in wire/. A stalled
// link moves nothing and says nothing: the coordinator's side finds it silent, and in the end a side gives it up.
// Transfers take bytes / rate and go on from the last chunk on the next connection.
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

struct LinkOptions {
    Duration delay = std::chrono::milliseconds(5);  // one way
    double rate = 12.5e6;                           // bytes a second, each way
};

constexpr Duration silence_bound = std::chrono::seconds(2);   // design: heartbeats every 500 ms, silent within 2 s
constexpr Duration give_up_bound = std::chrono::seconds(10);  // a stall this long ends the connection
constexpr std::uint64_t simulated_chunk = 64 * 1024;

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

    Network(EventQueue& queue, std::vector<LinkOptions> links, Sinks sinks);

    void connect(std::size_t link);
    void send(Side from, std::size_t link, Message message);
    /// The connection is lost: both sides learn it. With `gone`, that side is no longer there to learn it.
    void cut(std::size_t link, const std::string& why);
    void vanish(std::size_t link, Side gone);
    void stall(std::size_t link, Duration how_long);
    /// Moves bytes over the current connection, from `*at` (kept up to date for a later try) to `total`. Always
    /// answers.
    void transfer(std::size_t link, Side from, std::uint64_t total, std::shared_ptr<std::uint64_t> at,
                  std::function<void(const Status&)> done);

    [[nodiscard]] ConnectionId connection(std::size_t link) const { return links_[link].connection; }
    [[nodiscard]] std::uint64_t bytes_up() const { return bytes_up_; }
    [[nodiscard]] std::uint64_t bytes_down() const { return bytes_down_; }

private:
    struct Direction {
        std::deque<Message> under_way;
        Instant last_arrival{};
    };
    struct Link {
        LinkOptions options;
        ConnectionId connection = 0;
        std::uint64_t tries = 0;  // of connecting; an older one's answer is not heard
        Instant stalled_until{};
        bool told_silent = false;
        Direction to_client;
        Direction to_coordinator;
    };

    void deliver(std::size_t link, Side from, ConnectionId connection);
    void end(std::size_t link, const std::string& why, bool tell_client, bool tell_coordinator);
    void next_chunk(std::size_t link, Side from, ConnectionId connection, std::uint64_t total,
                    std::shared_ptr<std::uint64_t> at, std::function<void(const Status&)> done);
    void count(Side from, std::uint64_t bytes) { (from == Side::client ? bytes_up_ : bytes_down_) += bytes; }

    EventQueue& queue_;
    std::vector<Link> links_;
    Sinks sinks_;
    ConnectionId last_connection_ = 0;
    std::uint64_t bytes_up_ = 0;
    std::uint64_t bytes_down_ = 0;
};

}  // namespace causeway::simulation
