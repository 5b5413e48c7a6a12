// The listening ROUTER: who is behind a routing id, who has gone, and how one is put out.
#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <fstream>

#include "common/log.h"
#include "wire/sockets.h"

namespace causeway {
namespace {

constexpr int max_accepted_frames_per_turn = 64;
constexpr std::size_t max_bytes_per_turn = 4 << 20;  // about 2 ms of opening
constexpr int max_happenings = 256;                  // a look
constexpr int max_looks = 16;                        // a storm of 4,096 is known before its first frame is read
constexpr std::size_t max_dead = 4096;
// What may lie unread between a peer's socket and the core: kernel buffers (6 MB), two frames, the decoder. A peer
// that has not been admitted says at most a handshake and a hello (256 KiB), and all of them together may not hold more
// than a few do: strangers are looked at every turn, for what libzmq collects within one has no other bound.
constexpr std::uint64_t allowance = 24 << 20;
constexpr std::uint64_t allowance_before_admission = 512 << 10;
constexpr std::uint64_t allowance_of_all_strangers = 4 << 20;
constexpr Duration hoarder_interval = std::chrono::milliseconds(100);
constexpr std::size_t members_at_once = 64;
constexpr std::uint64_t growth_to_look_at = 16 << 20;

/// "192.0.2.1:5000" or "[2001:db8::1]:5000"; empty when the peer is gone already.
std::string peer_name(int descriptor) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        return {};
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
            inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text.data(), text.size());
        } else {
            inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
        }
        return Address{text.data(), ntohs(v6.sin6_port)}.text();
    }
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return Address{text.data(), ntohs(v4.sin_port)}.text();
}

std::uint64_t bytes_received(int descriptor) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    return getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

/// Of this process; 0: not known, as where there is no /proc.
std::uint64_t resident_bytes() {
    std::uint64_t total = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(SocketContext& context, const Address& address, int frames) {
    auto listener = std::make_unique<Listener>(
        MonitoredSocket(context, ZMQ_ROUTER, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED, frames));
    TRY(listener->bind(address));
    return listener;
}

Status Listener::bind(const Address& address) {
    const auto endpoint = [&](const std::string& host) {
        const bool any = address.port == 0;
        return "tcp://" + (any ? Address{host, 0}.text().substr(0, Address{host, 0}.text().size() - 1) + "*"
                               : Address{host, address.port}.text());
    };
    int failed = zmq_bind(socket_.socket(), endpoint(address.host == "*" ? "::" : address.host).c_str());
    if (failed != 0 && address.host == "*" && errno != EADDRINUSE) {  // a machine without IPv6
        socket_.set(ZMQ_IPV6, 0);
        failed = zmq_bind(socket_.socket(), endpoint("0.0.0.0").c_str());
    }
    if (failed != 0 && errno == EADDRINUSE) {
        return fail(ErrorKind::io, "port_in_use",
                    "another program listens on " + address.text() +
                        ": stop it or choose another port with --listen HOST:PORT");
    }
    if (failed != 0) {
        return fail(ErrorKind::io, "cannot_listen",
                    "cannot listen on " + address.text() + ": " + zmq_strerror(errno) +
                        "; --listen takes an address of this machine, as in "
                        "[::]:7400 (all) or 127.0.0.1:7400");
    }
    std::array<char, 256> bound{};
    std::size_t size = bound.size();
    zmq_getsockopt(socket_.socket(), ZMQ_LAST_ENDPOINT, bound.data(), &size);
    const std::string_view text(bound.data());
    TRY_ASSIGN(const auto actual, parse_address(text.substr(text.find("//") + 2)));
    port_ = actual.port;
    return {};
}

/// Bounded. Who came and who went is known before what they say is read: looked at before frames, and again for a frame
/// that does not fit what is known.
void Listener::follow_monitor(LinkCore& core, std::atomic<ConnectionId>& next_id, Instant now) {
    for (int i = 0; i < max_happenings; ++i) {
        const auto happening = socket_.next_happening();
        if (!happening) {
            return;
        }
        if (happening->event == ZMQ_EVENT_ACCEPTED) {
            accepted(core, next_id++, happening->value, now);
        } else if (happening->event == ZMQ_EVENT_DISCONNECTED) {
            disconnected(core, happening->value);
        }
    }
}

void Listener::accepted(LinkCore& core, ConnectionId connection, int descriptor, Instant now) {
    disconnected(core, descriptor);  // a descriptor that comes again was closed before
    Stranger stranger{connection, peer_name(descriptor), {}, 0, false};
    const auto address = stranger.address;
    by_descriptor_.emplace(descriptor, std::move(stranger));
    by_connection_.emplace(connection, descriptor);
    strangers_.insert(descriptor);
    if (!core.accept(connection, address, now)) {
        expel(connection);
    }
}

/// The core hears of it once; a connection that the core has expelled already is unknown to it by then.
void Listener::disconnected(LinkCore& core, int descriptor) {
    const auto found = by_descriptor_.find(descriptor);
    if (found == by_descriptor_.end()) {
        return;
    }
    ++ended_so_far_;
    const Stranger gone = std::move(found->second);
    by_descriptor_.erase(found);
    strangers_.erase(descriptor);
    by_connection_.erase(gone.connection);
    bury(gone.routing);
    core.lose(gone.connection, {ErrorKind::disconnected, "connection_lost", "the connection was closed by the peer"});
}

/// Frames of the dead may still be readable, and their descriptor may live again.
void Listener::bury(const std::string& routing) {
    if (routing.empty()) {
        return;
    }
    dead_.insert(routing);
    dead_order_.push_back(routing);
    if (dead_order_.size() > max_dead) {
        dead_.erase(dead_order_.front());
        dead_order_.pop_front();
    }
}

/// A frame belongs to a connection only when routing id and descriptor agree: either alone may be of the past. Routing
/// ids are never used twice, so where both agree no look at the monitor (a system call) can change it.
Listener::Stranger* Listener::whose(LinkCore& core, std::atomic<ConnectionId>& next_id, Instant now,
                                    std::string_view routing, int descriptor) {
    auto found = by_descriptor_.find(descriptor);
    if (found != by_descriptor_.end() && found->second.routing == routing) {
        return &found->second;
    }
    const std::string name(routing);
    for (int i = 0; i < max_looks && (i == 0 || socket_.monitor_readable()); ++i) {
        follow_monitor(core, next_id, now);
    }
    found = by_descriptor_.find(descriptor);
    if (found == by_descriptor_.end() || dead_.contains(name)) {
        return nullptr;
    }
    auto& stranger = found->second;
    if (stranger.routing.empty()) {
        stranger.routing = name;
    }
    return stranger.routing == name ? &stranger : nullptr;
}

/// One frame. False when there is none.
bool Listener::read_one(LinkCore& core, std::atomic<ConnectionId>& next_id, Instant now, std::int64_t unix_s,
                        std::size_t& taken) {
    std::array<char, 256> routing{};
    const int length = zmq_recv(socket_.socket(), routing.data(), routing.size(), ZMQ_DONTWAIT);
    if (length < 0) {
        return false;
    }
    const std::string_view id(routing.data(), std::min(static_cast<std::size_t>(length), routing.size()));
    for (int more = 1; more != 0;) {  // the parts of one message: bytes like any others
        zmq_msg_t frame;
        zmq_msg_init(&frame);
        if (zmq_msg_recv(&frame, socket_.socket(), ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&frame);
            return false;
        }
        more = zmq_msg_more(&frame);
        const auto size = zmq_msg_size(&frame);
        auto* stranger = whose(core, next_id, now, id, zmq_msg_get(&frame, ZMQ_SRCFD));
        if (stranger && !stranger->expelled) {
            stranger->taken += size;
            core.receive(stranger->connection, {static_cast<const std::byte*>(zmq_msg_data(&frame)), size}, now,
                         unix_s);
        }
        taken += size;
        zmq_msg_close(&frame);
    }
    return true;
}

void Listener::read(LinkCore& core, std::atomic<ConnectionId>& next_id, Instant now, std::int64_t unix_s) {
    if (socket_.monitor_readable()) {
        follow_monitor(core, next_id, now);
    }
    std::size_t taken = 0;
    for (int i = 0; socket_.readable() && i < max_accepted_frames_per_turn && taken < max_bytes_per_turn; ++i) {
        if (!read_one(core, next_id, now, unix_s, taken)) {
            socket_.all_taken();
        }
    }
}

LinkPort::Sent Listener::send(ConnectionId connection, Bytes& frame) {
    const auto descriptor = by_connection_.find(connection);
    if (descriptor == by_connection_.end()) {
        return LinkPort::Sent::gone;
    }
    const auto& stranger = by_descriptor_.at(descriptor->second);
    socket_.look_again();
    return stranger.expelled ? LinkPort::Sent::gone : send_frame(socket_.socket(), &stranger.routing, frame);
}

// shutdown, never close: the descriptor is libzmq's, which sees the end and closes it (0.05 ms, even when the peer
// does not read).
void Listener::expel(ConnectionId connection) {
    const auto descriptor = by_connection_.find(connection);
    if (descriptor == by_connection_.end()) {
        return;
    }
    auto& stranger = by_descriptor_.at(descriptor->second);
    // libzmq may have closed it, and another connection may have the number: the names tell.
    if (!stranger.expelled && peer_name(descriptor->second) == stranger.address) {
        shutdown(descriptor->second, SHUT_RDWR);
    }
    stranger.expelled = true;
}

// libzmq counts messages against its high-water mark, and a multipart message that never ends is none: the kernel's
// own count of received bytes is the only place where such a flood shows.
void Listener::expel_hoarders(LinkCore& core, Instant now) {
    look_at_strangers(core);
    if (now >= next_hoarder_check_) {
        next_hoarder_check_ = now + hoarder_interval;
        look_at_members();
    }
}

std::uint64_t Listener::unread(int descriptor, const Stranger& stranger) {
    const auto received = bytes_received(descriptor);
    return received > stranger.taken ? received - stranger.taken : 0;
}

void Listener::expel_hoarder(const Stranger& stranger) {
    log_warn("link", "expelled " + stranger.address + ": it sends more than it may");
    expel(stranger.connection);
}

/// Each of them in every turn, and what all of them together hold.
void Listener::look_at_strangers(const LinkCore& core) {
    std::uint64_t of_all = 0;
    for (auto at = strangers_.begin(); at != strangers_.end();) {
        const int descriptor = *at;
        const auto& stranger = by_descriptor_.at(descriptor);
        if (stranger.expelled || core.is_admitted(stranger.connection)) {
            at = strangers_.erase(at);
            continue;
        }
        ++at;
        const auto held = unread(descriptor, stranger);
        of_all += held;
        if (held > allowance_before_admission + stranger.taken / 64 || of_all > allowance_of_all_strangers) {
            expel_hoarder(stranger);
            of_all -= held;
        }
    }
}

/// A system call each: of a thousand a tenth at a time, in turn, and all of them when memory grows, which is what they
/// must not make it do.
void Listener::look_at_members() {
    const auto resident = by_descriptor_.size() > members_at_once ? resident_bytes() : 0;
    const bool grows = resident > resident_ + growth_to_look_at;
    resident_ = grows ? resident : std::min(resident_, resident);
    const auto count = grows ? by_descriptor_.size() : std::max(members_at_once, by_descriptor_.size() / 10);
    auto at = by_descriptor_.upper_bound(last_looked_at_);
    for (std::size_t i = 0; i < std::min(count, by_descriptor_.size()); ++i, ++at) {
        at = at == by_descriptor_.end() ? by_descriptor_.begin() : at;
        const auto& [descriptor, member] = *at;
        last_looked_at_ = descriptor;
        const bool skip = member.expelled || strangers_.contains(descriptor);
        if (!skip && unread(descriptor, member) > allowance + member.taken / 64) {
            expel_hoarder(member);
        }
    }
}

}  // namespace causeway
