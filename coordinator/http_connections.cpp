// See http_connections.h.
#include "coordinator/http_connections.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

namespace causeway {
namespace {

using namespace std::chrono_literals;

// A prober of this machine has sent its request before it is accepted, and reads the answer at once.
constexpr Duration http_request_limit = 2s;
constexpr Duration http_answer_limit = 2s;
/// What comes after the request is thrown away for a while: closing with bytes unread would take the answer from its
/// reader.
constexpr Duration http_leave_limit = 500ms;
constexpr std::size_t most_thrown_away = 64 << 10;
/// A connection keeps its place at least so long: a request comes right after it is accepted, but not in the same
/// instant. In a storm of connections 6,400 a second get a place.
constexpr Duration least_http_stay = 10ms;
constexpr int accepts_a_turn = 16;
constexpr int waiting_connections = 128;         // in the kernel; they cost this process nothing
constexpr Duration without_descriptors = 100ms;  // until accepting is tried again
constexpr int http_receive_buffer = 16 << 10;    // of the kernel, a connection

std::string_view http_words(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 400:
            return "Bad Request";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 413:
            return "Content Too Large";
        case 431:
            return "Request Header Fields Too Large";
        case 503:
            return "Service Unavailable";
        case 505:
            return "HTTP Version Not Supported";
        default:
            return "Error";
    }
}

HttpResponse http_refusal(int status) {
    return {status, status == 408 ? "the request did not come in time\n" : std::string(http_words(status)) + "\n"};
}

/// -1: errno says why.
int http_listen(const addrinfo& where) {
    const int descriptor =
        ::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol);
    if (descriptor < 0) {
        return -1;
    }
    const int on = 1;
    (void)::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void)::setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &http_receive_buffer, sizeof http_receive_buffer);
    if (::bind(descriptor, where.ai_addr, where.ai_addrlen) == 0 && ::listen(descriptor, waiting_connections) == 0) {
        return descriptor;
    }
    const int why = errno;
    ::close(descriptor);
    errno = why;
    return -1;
}

std::uint16_t http_port_of(int descriptor) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    (void)::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                               : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Result<std::unique_ptr<HttpConnections>> HttpConnections::open(const Address& listen, Answer answer) {
    addrinfo hints{};
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    int descriptor = -1;
    const auto named = ::getaddrinfo(listen.host.c_str(), std::to_string(listen.port).c_str(), &hints, &found);
    std::string why = named == 0 ? "" : ::gai_strerror(named);
    for (const auto* where = found; where != nullptr && descriptor < 0; where = where->ai_next) {
        descriptor = http_listen(*where);
        why = descriptor < 0 ? std::strerror(errno) : "";
    }
    if (found != nullptr) {
        ::freeaddrinfo(found);
    }
    if (descriptor < 0) {
        return fail(ErrorKind::io, "port_in_use",
                    fmt::format("--http {}: the port cannot be had ({}); stop what uses it or take another",
                                listen.text(), why));
    }
    const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0) {
        why = std::strerror(errno);
        ::close(descriptor);
        return fail(ErrorKind::io, "too_few_descriptors", fmt::format("--http {}: {}", listen.text(), why));
    }
    return std::make_unique<HttpConnections>(descriptor, wake, http_port_of(descriptor), std::move(answer));
}

HttpConnections::HttpConnections(int listening, int wake, std::uint16_t port, Answer answer)
    : listening_(listening), wake_(wake), port_(port), answer_(std::move(answer)) {}

HttpConnections::~HttpConnections() {
    std::ranges::for_each(connections_, [this](auto& connection) { close(connection); });
    ::close(listening_);
    ::close(wake_);
}

void HttpConnections::stop() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);
}

void HttpConnections::run() {
    while (turn() == Turn::go_on) {
    }
}

/// Who was there first is read first, and only then newcomers and deadlines are looked at: what had come while this
/// thread was held up is not late.
HttpConnections::Turn HttpConnections::turn() {
    const bool accepting = real_now() >= accept_again_;
    std::vector<pollfd> waiting = {{wake_, POLLIN, 0}, {listening_, static_cast<short>(accepting ? POLLIN : 0), 0}};
    for (const auto& connection : connections_) {
        const auto what = connection.phase == Phase::answering ? POLLOUT : POLLIN;
        waiting.push_back({connection.descriptor, static_cast<short>(what), 0});
    }
    const auto deadline = next_deadline();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(deadline - real_now(), Duration::zero()));
    const int ready = ::poll(waiting.data(), waiting.size(), deadline == never ? -1 : static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) {
        return Turn::end;
    }
    if (waiting[0].revents != 0) {
        return Turn::end;
    }
    const auto now = real_now();
    auto slot = waiting.begin() + 2;
    for (auto& connection : connections_) {
        if ((slot++)->revents != 0) {
            connection.phase == Phase::answering ? send_rest(connection, now) : receive(connection);
        }
    }
    sweep();
    if (waiting[1].revents != 0) {
        accept_some(now);
    }
    answer_whole(now);
    end_late(now);
    sweep();
    return Turn::go_on;
}

Instant HttpConnections::next_deadline() const {
    auto next = real_now() < accept_again_ ? accept_again_ : never;
    for (const auto& connection : connections_) {
        const auto limit = connection.phase == Phase::reading     ? http_request_limit
                           : connection.phase == Phase::answering ? http_answer_limit
                                                                  : http_leave_limit;
        next = std::min(next, connection.since + limit);
    }
    return next;
}

void HttpConnections::accept_some(Instant now) {
    for (int i = 0; i < accepts_a_turn; ++i) {
        if (!make_place(now)) {
            return;
        }
        const int descriptor = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (descriptor < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                accept_again_ = now + without_descriptors;
            }
            return;
        }
        connections_.push_back({.descriptor = descriptor, .since = now, .accepted = now});
        receive(connections_.back());
    }
}

/// False: all places are taken, and by connections that have only just come.
bool HttpConnections::make_place(Instant now) {
    if (connections_.size() < most_connections) {
        return true;
    }
    auto& oldest = connections_.front();
    if (now - oldest.accepted < least_http_stay) {
        accept_again_ = oldest.accepted + least_http_stay;
        return false;
    }
    close(oldest);
    connections_.pop_front();
    return true;
}

/// One read a turn: who sends much has no more of this thread than who sends little.
void HttpConnections::receive(Connection& connection) {
    std::array<char, 4096> bytes;  // NOLINT: filled by the kernel
    const auto count = ::recv(connection.descriptor, bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (count <= 0) {
        return close(connection);
    }
    const auto size = static_cast<std::size_t>(count);
    if (connection.phase == Phase::reading) {
        connection.reader.read({bytes.data(), size});
        return;
    }
    connection.thrown_away += size;
    if (connection.thrown_away > most_thrown_away) {
        close(connection);
    }
}

void HttpConnections::answer_whole(Instant now) {
    std::vector<HttpRequest> requests;
    std::vector<Connection*> asking;
    for (auto& connection : connections_) {
        if (connection.descriptor < 0 || connection.phase != Phase::reading) {
            continue;
        }
        if (connection.reader.state() == HttpRequestReader::State::refused) {
            put(connection, http_refusal(connection.reader.status()), now);
        } else if (connection.reader.state() == HttpRequestReader::State::whole) {
            requests.push_back(connection.reader.request());
            asking.push_back(&connection);
        }
    }
    if (requests.empty()) {
        return;
    }
    const auto responses = answer_(requests);
    for (std::size_t i = 0; i < asking.size(); ++i) {
        put(*asking[i], responses[i], real_now());
    }
}

void HttpConnections::put(Connection& connection, const HttpResponse& response, Instant now) {
    connection.output = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n"
        "{}\r\n",
        response.status, http_words(response.status), response.type, response.body.size(), response.more);
    if (connection.reader.request().method != "HEAD") {
        connection.output += response.body;
    }
    connection.phase = Phase::answering;
    connection.since = now;
    send_rest(connection, now);
}

void HttpConnections::send_rest(Connection& connection, Instant now) {
    while (connection.sent < connection.output.size()) {
        const auto count = ::send(connection.descriptor, connection.output.data() + connection.sent,
                                  connection.output.size() - connection.sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) {
            return;
        }
        if (count < 0 && errno != EINTR) {
            return close(connection);
        }
        connection.sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
    leave(connection, now);
}

void HttpConnections::leave(Connection& connection, Instant now) {
    (void)::shutdown(connection.descriptor, SHUT_WR);
    connection.phase = Phase::leaving;
    connection.since = now;
    connection.output = {};
}

void HttpConnections::end_late(Instant now) {
    for (auto& connection : connections_) {
        const auto taken = now - connection.since;
        if (connection.descriptor < 0) {
            continue;
        }
        if (connection.phase == Phase::reading && taken >= http_request_limit) {
            put(connection, http_refusal(408), now);
        } else if ((connection.phase == Phase::answering && taken >= http_answer_limit) ||
                   (connection.phase == Phase::leaving && taken >= http_leave_limit)) {
            close(connection);
        }
    }
}

void HttpConnections::close(Connection& connection) {
    if (connection.descriptor >= 0) {
        ::close(connection.descriptor);
        connection.descriptor = -1;
    }
}

void HttpConnections::sweep() {
    connections_.remove_if([](const auto& connection) { return connection.descriptor < 0; });
}

}  // namespace causeway
