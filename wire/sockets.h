// The sockets under the link: one listener (ROUTER) and any number of dialled connections (DEALER), with their
// monitors. Bytes only; what they mean is the core's. ZeroMQ's own header stays in the .cpp files, where sockets are
// void pointers anyway.
//
// Facts behind this form (libzmq 4.3.4, docs/performance.md): a lost connection is seen by the monitor in 0.5 ms, a
// routing id is tied to a descriptor by ZMQ_SRCFD, and a peer is expelled by shutdown() of that descriptor.
//
// threads  made by the starting thread, then the link thread's
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "wire/link_core.h"

namespace causeway {

/// ZeroMQ's context. Outlives its sockets.
class SocketContext {
public:
    SocketContext();
    ~SocketContext();
    SocketContext(const SocketContext&) = delete;
    SocketContext& operator=(const SocketContext&) = delete;
    [[nodiscard]] void* get() const { return context_; }

private:
    void* context_;
};

/// A socket together with its monitor, closed in the one order that never hangs libzmq: monitor, its pair, the socket.
class MonitoredSocket {
public:
    /// `frames`: how many wait in each connection's pipe to be sent; one more waits sealed.
    MonitoredSocket(SocketContext& context, int type, int events, int frames);
    ~MonitoredSocket();
    MonitoredSocket(MonitoredSocket&& other) noexcept;
    MonitoredSocket& operator=(MonitoredSocket&&) = delete;

    struct Happening {
        int event = 0;
        int value = 0;  // a descriptor, mostly
    };
    /// The monitor's next event, if there is one. cost: one system call at most
    std::optional<Happening> next_happening();
    void set(int option, int value);
    [[nodiscard]] void* socket() const { return socket_; }

    // Waiting: both descriptors tell only of what comes after all was taken, and a send may swallow their signal. So
    // who waits asks has_more() first, and who reads goes on until there is nothing or calls look_again().
    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] int monitor_descriptor() const { return monitor_descriptor_; }
    /// cost: one system call after a send, else none
    bool has_more();
    void look_again() { more_ = true; }
    void look_at_monitor() { monitor_more_ = more_ = true; }  // what came before an end is read before it
    void all_taken() { more_ = false; }
    [[nodiscard]] bool readable() const { return more_; }
    [[nodiscard]] bool monitor_readable() const { return monitor_more_; }

private:
    void* socket_ = nullptr;
    void* monitor_ = nullptr;
    int descriptor_ = -1;
    int monitor_descriptor_ = -1;
    bool more_ = true;
    bool monitor_more_ = true;
};

// Frames in a pipe. A pipe of one stands still until ZeroMQ's thread and ours have both had a turn: streams were ten
// times slower by it. A coordinator's thousand connections would hold a thousand such pipes full of sealed chunks.
constexpr int node_frames = 16;
constexpr int coordinator_frames = 1;

/// Hands a frame over without copying it. `routing` first, where the socket is a ROUTER.
LinkPort::Sent send_frame(void* socket, const std::string* routing, Bytes& frame);

class Listener {
public:
    /// errors  io: port_in_use, cannot_listen
    static Result<std::unique_ptr<Listener>> open(SocketContext& context, const Address& address,
                                                  int frames);
    explicit Listener(MonitoredSocket socket) : socket_(std::move(socket)) {}

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] MonitoredSocket& socket() { return socket_; }
    [[nodiscard]] std::uint64_t ended_so_far() const { return ended_so_far_; }

    /// Takes in what has arrived, at most about 4 MB.
    ///
    /// `next_id` numbers the accepted connections
    void read(LinkCore& core, std::atomic<ConnectionId>& next_id, Instant now, std::int64_t unix_s);
    LinkPort::Sent send(ConnectionId connection, Bytes& frame);
    void expel(ConnectionId connection);
    [[nodiscard]] bool has(ConnectionId connection) const { return by_connection_.contains(connection); }
    /// Expels who sends more than the link takes in: multipart messages escape ZeroMQ's own limits.
    void expel_hoarders(LinkCore& core, Instant now);

private:
    struct Stranger {
        ConnectionId connection = 0;
        std::string address;
        std::string routing;      // empty until its first frame
        std::uint64_t taken = 0;  // bytes that reached the core
        bool expelled = false;
    };
    Status bind(const Address& address);
    void follow_monitor(LinkCore& core, std::atomic<ConnectionId>& next_id, Instant now);
    void accepted(LinkCore& core, ConnectionId connection, int descriptor, Instant now);
    void disconnected(LinkCore& core, int descriptor);
    bool read_one(LinkCore& core, std::atomic<ConnectionId>& next_id, Instant now, std::int64_t unix_s,
                  std::size_t& taken);
    Stranger* whose(LinkCore& core, std::atomic<ConnectionId>& next_id, Instant now, std::string_view routing,
                    int descriptor);
    void bury(const std::string& routing);
    static std::uint64_t unread(int descriptor, const Stranger& stranger);
    void expel_hoarder(const Stranger& stranger);
    void look_at_strangers(const LinkCore& core);
    void look_at_members();

    MonitoredSocket socket_;
    std::uint16_t port_ = 0;
    std::uint64_t ended_so_far_ = 0;
    std::map<int, Stranger> by_descriptor_;
    std::map<ConnectionId, int> by_connection_;
    std::set<std::string> dead_;          // routing ids whose leftovers may still be read
    std::deque<std::string> dead_order_;  // the oldest go
    Instant next_hoarder_check_{};
    std::set<int> strangers_;     // descriptors of those that the core does not know yet
    int last_looked_at_ = -1;     // of the members, who are looked at in turn
    std::uint64_t resident_ = 0;  // memory of this process when it last grew
};

/// One dialled connection.
class Dialled {
public:
    Dialled(SocketContext& context, ConnectionId connection);

    /// errors  io `cannot_connect`
    Status connect(const Address& to);
    void read(LinkCore& core, Instant now, std::int64_t unix_s);
    LinkPort::Sent send(Bytes& frame);
    [[nodiscard]] MonitoredSocket& socket() { return socket_; }

private:
    MonitoredSocket socket_;
    ConnectionId connection_;
    bool up_ = false;  // ZeroMQ's own handshake is done
};

}  // namespace causeway
