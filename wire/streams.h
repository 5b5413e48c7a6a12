// Streams: what the cells of a split model send each other, from node to node.
//
// The owner says who may talk (the coordinator's roster) and sends whole messages to nodes by name; connections are
// opened as soon as the roster names a peer, to an address of it or through the coordinator's relay, so that no message
// waits for them, and live as long as it does. Messages to one node arrive whole and in order, or the node is reported
// as lost: there is no resending here, for a round knows better what to do about it.
//
// A thread of its own takes the events of the link's streams queue. Callbacks come on it and must not wait.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wire/link.h"

namespace causeway {

struct StreamCallbacks {
    /// A whole message of a rostered peer: offset 0, the payload all `total` bytes. The owner bounds what it keeps, and
    /// cuts off who sends more.
    std::function<void(const std::string& node, StreamData message)> deliver;
    /// A connection that was in use is gone, or none could be made; what waited to be sent is dropped. Once per loss.
    std::function<void(const std::string& node, const Error& why)> lost;
};

struct StreamLimits {
    std::uint64_t largest = std::uint64_t{256} << 20;  // bytes of a message; as much may be unfinished per connection
    std::uint64_t waiting = std::uint64_t{512} << 20;  // bytes that wait to be sent to one peer
    std::size_t in_link = 4 << 20;                     // bytes given to the link and not yet handed to the socket
    Duration connect = std::chrono::seconds(3);        // per address
    Duration settle = std::chrono::seconds(3);         // the peer's roster may come later than ours
    Duration wait_for_peer = std::chrono::seconds(2);  // to connect to us, before the relay is tried
    Duration idle = std::chrono::seconds(30);          // of the relay connection, without a stream in it
};

/// threads  thread-safe
class Streams {
public:
    /// `events` is the streams queue that the link was started with. The link must outlive the streams.
    Streams(Link& link, std::shared_ptr<LinkEvents> events, StreamCallbacks callbacks, StreamLimits limits = {});
    ~Streams();
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;

    /// Who may talk to this node, in place of what was said before. Connections that it still allows go on, others are
    /// closed, and each when its line expires.
    void roster(const Roster& roster, Instant now);
    /// To a node on the roster of the message's experiment (its lease's). In order per node; never waits.
    void send(const std::string& node, StreamData message);
    /// Closes the node's connections with that reason: it sends what it must not. `lost` follows.
    void cut_off(const std::string& node, Error why);
    /// The relay may be used from now on, until detach: our session with the coordinator.
    void attach(ConnectionId control, Address coordinator, std::uint64_t session);
    void detach(ConnectionId control);

    /// At the socket, after encryption.
    [[nodiscard]] Traffic traffic() const;
    /// One line per open route: "host-1 direct 10.0.0.3:7401", "host-1 relayed". Not from a callback.
    [[nodiscard]] std::vector<std::string> routes() const;

    struct State;

private:
    std::unique_ptr<State> state_;
};

}  // namespace causeway
