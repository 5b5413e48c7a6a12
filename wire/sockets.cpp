// What listener and dialled connections share: options, monitors, frames handed over without a copy.
#include "wire/sockets.h"

#include <zmq.h>

#include <cerrno>
#include <cstring>

namespace causeway {
namespace {

int descriptor_of(void* socket) {
    int descriptor = -1;
    std::size_t size = sizeof(descriptor);
    ASSERT(zmq_getsockopt(socket, ZMQ_FD, &descriptor, &size) == 0);
    return descriptor;
}

// Backstops behind the link's own limits: the core heartbeats, times out and counts by itself.
constexpr int heartbeat_ms = 10'000;
constexpr int heartbeat_timeout_ms = 60'000;
constexpr int handshake_ms = 10'000;
constexpr int connect_timeout_ms = 8'000;
constexpr int backlog = 1024;
constexpr int receive_high_water = 2;  // of whom we may not know yet: it bounds what a stranger makes us hold

}  // namespace

SocketContext::SocketContext() : context_(zmq_ctx_new()) {
    ASSERT(context_ != nullptr);
    zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, 1023);
}
SocketContext::~SocketContext() {
    while (zmq_ctx_term(context_) != 0 && errno == EINTR) {
    }
}

MonitoredSocket::MonitoredSocket(SocketContext& context, int type, int events, int frames)
    : socket_(zmq_socket(context.get(), type)) {
    ASSERT(socket_ != nullptr);
    set(ZMQ_IPV6, 1);
    set(ZMQ_LINGER, 0);
    set(ZMQ_SNDHWM, frames);
    set(ZMQ_RCVHWM, receive_high_water);
    const std::int64_t longest = static_cast<std::int64_t>(max_sealed_bytes);
    zmq_setsockopt(socket_, ZMQ_MAXMSGSIZE, &longest, sizeof(longest));
    set(ZMQ_HANDSHAKE_IVL, handshake_ms);
    set(ZMQ_HEARTBEAT_IVL, heartbeat_ms);
    set(ZMQ_HEARTBEAT_TIMEOUT, heartbeat_timeout_ms);
    set(ZMQ_BACKLOG, backlog);
    if (type == ZMQ_ROUTER) {
        set(ZMQ_ROUTER_MANDATORY, 1);  // without it a full pipe drops silently and breaks the TLS stream
    } else {
        set(ZMQ_RECONNECT_IVL, -1);
        set(ZMQ_CONNECT_TIMEOUT, connect_timeout_ms);
    }
    // Named by the socket's own address: unique among those that live.
    const auto name = "inproc://monitor-" + std::to_string(reinterpret_cast<std::uintptr_t>(socket_));
    ASSERT(zmq_socket_monitor(socket_, name.c_str(), events) == 0);
    monitor_ = zmq_socket(context.get(), ZMQ_PAIR);
    ASSERT(monitor_ != nullptr);
    const int unlimited = 0;  // a full monitor would block libzmq's own thread
    zmq_setsockopt(monitor_, ZMQ_RCVHWM, &unlimited, sizeof(unlimited));
    const int none = 0;
    zmq_setsockopt(monitor_, ZMQ_LINGER, &none, sizeof(none));
    ASSERT(zmq_connect(monitor_, name.c_str()) == 0);
    descriptor_ = descriptor_of(socket_);
    monitor_descriptor_ = descriptor_of(monitor_);
}

MonitoredSocket::MonitoredSocket(MonitoredSocket&& other) noexcept
    : socket_(std::exchange(other.socket_, nullptr)),
      monitor_(std::exchange(other.monitor_, nullptr)),
      descriptor_(other.descriptor_),
      monitor_descriptor_(other.monitor_descriptor_) {}

MonitoredSocket::~MonitoredSocket() {
    if (socket_) {
        zmq_socket_monitor(socket_, nullptr, 0);
        zmq_close(monitor_);
        zmq_close(socket_);
    }
}

void MonitoredSocket::set(int option, int value) {
    zmq_setsockopt(socket_, option, &value, sizeof(value));
}

std::optional<MonitoredSocket::Happening> MonitoredSocket::next_happening() {
    // Two frames: u16 event and i32 value, then the endpoint.
    std::array<std::byte, 6> head{};
    if (zmq_recv(monitor_, head.data(), head.size(), ZMQ_DONTWAIT) < 6) {
        monitor_more_ = false;
        return std::nullopt;
    }
    std::array<char, 256> endpoint{};
    zmq_recv(monitor_, endpoint.data(), endpoint.size(), ZMQ_DONTWAIT);
    std::uint16_t event = 0;
    std::int32_t value = 0;
    std::memcpy(&event, head.data(), sizeof(event));
    std::memcpy(&value, head.data() + sizeof(event), sizeof(value));
    return Happening{event, value};
}

bool MonitoredSocket::has_more() {
    if (more_) {
        int events = 0;
        std::size_t size = sizeof(events);
        more_ = zmq_getsockopt(socket_, ZMQ_EVENTS, &events, &size) != 0 || (events & ZMQ_POLLIN) != 0;
    }
    return more_ || monitor_more_;
}

LinkPort::Sent send_frame(void* socket, const std::string* routing, Bytes& frame) {
    const auto failed = [] { return errno == EAGAIN || errno == EINTR ? LinkPort::Sent::full : LinkPort::Sent::gone; };
    if (routing && zmq_send(socket, routing->data(), routing->size(), ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) {
        return failed();
    }
    auto owned = std::make_unique<Bytes>(std::move(frame));
    const auto release = [](void*, void* hint) { std::unique_ptr<Bytes>(static_cast<Bytes*>(hint)).reset(); };
    zmq_msg_t message;
    zmq_msg_init_data(&message, owned->data(), owned->size(), release, owned.get());
    if (zmq_msg_send(&message, socket, ZMQ_DONTWAIT) >= 0) {
        (void)owned.release();  // ZeroMQ's now; `release` takes it back
        return LinkPort::Sent::yes;
    }
    const auto result = failed();
    frame = std::move(*owned);
    // Closing the message would free through `release`: the bytes are moved out, only the empty vector goes.
    (void)owned.release();
    zmq_msg_close(&message);
    return result;
}

}  // namespace causeway
