// The proxy's loop: what is due is written, what has room is read, and poll waits for whichever comes first.
//
// A connection that ends on one side is ended on the other once what was on its way has come through; an error ends
// both at once, as a cable that is cut. Sockets have small buffers: a megabyte waiting in the kernel would be a queue
// that no real line has. See shaped_links.h.
#include "cli/shaped_links.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <list>
#include <string>
#include <thread>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "common/bytes.h"

namespace causeway::cli {
namespace {

constexpr int socket_buffer = 64 * 1024;
constexpr std::size_t smallest_piece = 1448;  // a packet's
constexpr std::size_t largest_piece = 64 * 1024;
constexpr double piece_seconds = 0.005;

/// Closed with its owner.
class Socket {
public:
    explicit Socket(int fd = -1) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Socket() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    [[nodiscard]] int fd() const { return fd_; }

private:
    int fd_;
};

void make_prompt(const Socket& socket) {
    const int on = 1;
    ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUF, &socket_buffer, sizeof socket_buffer);
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &socket_buffer, sizeof socket_buffer);
}

bool would_block() {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == EINPROGRESS;
}

/// A numeric address as the kernel takes it.
struct LinkTarget {
    sockaddr_storage address{};
    socklen_t size = 0;
};

Result<LinkTarget> target_of(const Address& address) {
    addrinfo wanted{};
    wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found) != 0) {
        return fail(ErrorKind::invalid, "bad_address", address.text() + ": a shaped link leads to a numeric address");
    }
    LinkTarget target;
    target.size = found->ai_addrlen;
    std::memcpy(&target.address, found->ai_addr, found->ai_addrlen);
    ::freeaddrinfo(found);
    return target;
}

struct Listening {
    Socket socket;
    std::uint16_t port = 0;
};

Result<Listening> listen_on_loopback() {
    Listening listening{Socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)), 0};
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    auto* address = reinterpret_cast<sockaddr*>(&any);
    const int fd = listening.socket.fd();
    make_prompt(listening.socket);  // what is accepted inherits it
    if (fd < 0 || ::bind(fd, address, size) != 0 || ::listen(fd, 64) != 0 || ::getsockname(fd, address, &size) != 0) {
        return fail(ErrorKind::io, "cannot_listen", fmt::format("127.0.0.1: {}", std::strerror(errno)));
    }
    listening.port = ntohs(any.sin_port);
    return listening;
}

/// Bytes on their way, and when they are there.
struct Piece {
    Instant due{};
    Bytes bytes;
    std::size_t sent = 0;
};

/// From one socket to the other.
struct ByteFlow {
    ShapedLine* line = nullptr;
    std::deque<Piece> under_way;
    bool ended = false;   // nothing more comes from the source
    bool passed = false;  // and the sink was told so
    bool full = false;    // the sink takes nothing at the moment
};

struct Connection {
    const std::atomic<bool>* silent = nullptr;  // its line's
    Socket client;
    Socket target;
    ByteFlow up;
    ByteFlow down;
    bool broken = false;
    [[nodiscard]] bool over() const { return broken || (up.passed && down.passed); }
};

/// Everything that is due now, as far as the sink takes it.
void write_due(ByteFlow& flow, const Socket& sink, Instant now, bool& broken) {
    flow.full = false;
    while (!flow.under_way.empty() && flow.under_way.front().due <= now) {
        auto& piece = flow.under_way.front();
        const auto sent =
            ::send(sink.fd(), piece.bytes.data() + piece.sent, piece.bytes.size() - piece.sent, MSG_NOSIGNAL);
        if (sent < 0) {
            flow.full = would_block();
            broken = broken || !flow.full;
            return;
        }
        piece.sent += static_cast<std::size_t>(sent);
        if (piece.sent == piece.bytes.size()) {
            flow.under_way.pop_front();
        }
    }
    if (flow.ended && !flow.passed && flow.under_way.empty()) {
        ::shutdown(sink.fd(), SHUT_WR);
        flow.passed = true;
    }
}

/// One piece, if the line has room.
void read_some(ByteFlow& flow, const Socket& source, Instant now, bool& broken) {
    if (flow.ended || flow.line->room_at() > now) {
        return;
    }
    Bytes bytes(flow.line->piece());
    const auto got = ::recv(source.fd(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
        bytes.resize(static_cast<std::size_t>(got));
        flow.under_way.push_back({flow.line->take(now, bytes.size()), std::move(bytes)});
    } else if (got == 0) {
        flow.ended = true;
    } else if (!would_block()) {
        broken = true;
    }
}

}  // namespace

Instant ShapedLine::take(Instant now, std::size_t bytes) {
    free_ = std::max(free_, now) + from_seconds(static_cast<double>(bytes) / way_.rate);
    const auto jitter = jitter_ > Duration::zero() ? seconds(jitter_) * random_.uniform() : 0.0;
    last_ = std::max(last_, free_ + way_.delay + from_seconds(jitter));
    return last_;
}

std::size_t ShapedLine::piece() const {
    return std::clamp(static_cast<std::size_t>(std::min(way_.rate * piece_seconds, 1e9)), smallest_piece,
                      largest_piece);
}

struct ShapedLinks::State {
    struct Line {
        ShapedLine up;
        ShapedLine down;
        std::atomic<bool> silent{false};
        Line(ShapedLine first, ShapedLine second) : up(std::move(first)), down(std::move(second)) {}
    };
    struct Route {
        std::size_t line;
        LinkTarget target;
        Listening listening;
    };

    std::deque<Line> lines;
    std::vector<Route> routes;
    std::list<Connection> connections;
    std::array<int, 2> wake{-1, -1};  // the owner closes its end: the loop ends
    std::thread thread;

    ~State() {
        for (const int fd : wake) {
            if (fd >= 0) {
                ::close(fd);
            }
        }
    }

    void accept_all(Route& route) {
        for (;;) {
            Connection made;
            made.client =
                Socket(::accept4(route.listening.socket.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (made.client.fd() < 0) {
                return;
            }
            made.target =
                Socket(::socket(route.target.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            make_prompt(made.client);
            make_prompt(made.target);
            const auto* address = reinterpret_cast<const sockaddr*>(&route.target.address);
            if (::connect(made.target.fd(), address, route.target.size) != 0 && !would_block()) {
                continue;  // nobody there: the client's connection closes
            }
            made.silent = &lines[route.line].silent;
            made.up.line = &lines[route.line].up;
            made.down.line = &lines[route.line].down;
            connections.push_back(std::move(made));
        }
    }

    /// What poll is asked of a direction; `until` comes down to when it next has something to do by itself.
    static void expect(const ByteFlow& flow, Instant now, pollfd& source, pollfd& sink, Instant& until) {
        if (!flow.ended && flow.line->room_at() <= now) {
            source.events |= POLLIN;
        } else if (!flow.ended) {
            until = std::min(until, flow.line->room_at());
        }
        if (flow.full) {
            sink.events |= POLLOUT;
        } else if (!flow.under_way.empty()) {
            until = std::min(until, flow.under_way.front().due);
        }
    }

    /// Waits until a socket or the clock has something. False: the owner has ended it.
    bool wait() {
        constexpr Duration longest = std::chrono::seconds(60);
        const Instant now = real_now();
        Instant until = now + longest;
        std::vector<pollfd> asked{{wake[0], POLLIN, 0}};
        for (const auto& route : routes) {
            asked.push_back({route.listening.socket.fd(), POLLIN, 0});
        }
        for (const auto& connection : connections) {
            if (*connection.silent) {
                continue;
            }
            pollfd client{connection.client.fd(), 0, 0};
            pollfd target{connection.target.fd(), 0, 0};
            expect(connection.up, now, client, target, until);
            expect(connection.down, now, target, client, until);
            for (auto& one : {client, target}) {
                if (one.events != 0) {  // else a hang-up that nobody can act on yet would end every wait at once
                    asked.push_back(one);
                }
            }
        }
        const auto nanoseconds = std::max(until - now, Duration::zero()).count();
        const timespec patience{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
        ::ppoll(asked.data(), asked.size(), &patience, nullptr);
        return (asked.front().revents & (POLLIN | POLLHUP)) == 0;
    }

    void run() {
        while (wait()) {
            for (auto& route : routes) {
                accept_all(route);
            }
            const Instant now = real_now();
            for (auto& connection : connections) {
                if (*connection.silent) {
                    continue;
                }
                read_some(connection.up, connection.client, now, connection.broken);
                read_some(connection.down, connection.target, now, connection.broken);
                write_due(connection.up, connection.target, now, connection.broken);
                write_due(connection.down, connection.client, now, connection.broken);
            }
            connections.remove_if([](const Connection& connection) { return connection.over(); });
            if (connections.size() > 1) {  // the next one has the first choice of its line
                connections.splice(connections.end(), connections, connections.begin());
            }
        }
        connections.clear();
    }
};

Result<std::unique_ptr<ShapedLinks>> ShapedLinks::start(const std::vector<simulation::ShapedLink>& lines,
                                                        const std::vector<ShapedRoute>& routes, std::uint64_t seed) {
    auto state = std::make_unique<State>();
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const RandomKey up{.seed = seed, .purpose = "shaped-link", .node = i, .layer = 0};
        const RandomKey down{.seed = seed, .purpose = "shaped-link", .node = i, .layer = 1};
        state->lines.emplace_back(ShapedLine(lines[i].link.up, lines[i].jitter, up),
                                  ShapedLine(lines[i].link.down, lines[i].jitter, down));
    }
    for (const auto& route : routes) {
        ASSERT(route.line < lines.size());
        TRY_ASSIGN(const auto target, target_of(route.to));
        TRY_ASSIGN(auto listening, listen_on_loopback());
        state->routes.push_back({route.line, target, std::move(listening)});
    }
    if (::pipe2(state->wake.data(), O_CLOEXEC) != 0) {
        return fail(ErrorKind::io, "io", fmt::format("a pipe: {}", std::strerror(errno)));
    }
    state->thread = std::thread([own = state.get()] { own->run(); });
    return std::make_unique<ShapedLinks>(std::move(state));
}

ShapedLinks::ShapedLinks(std::unique_ptr<State> state) : state_(std::move(state)) {}

ShapedLinks::~ShapedLinks() {
    ::close(std::exchange(state_->wake[1], -1));
    state_->thread.join();
}

void ShapedLinks::silence(std::size_t line) {
    state_->lines.at(line).silent = true;
}

std::uint16_t ShapedLinks::port(std::size_t route) const {
    return state_->routes.at(route).listening.port;
}

}  // namespace causeway::cli
