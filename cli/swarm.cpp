// Non-blocking sockets under one epoll; ZMTP 3.0 by hand (greeting, READY, frames), because a ZeroMQ socket a session
// would cost more than the session. source: rfc.zeromq.org/spec/23.
#include "cli/swarm.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "common/overloaded.h"

namespace causeway::cli {
namespace {

constexpr std::uint8_t long_frame = 2;
constexpr std::uint8_t command_frame = 4;
constexpr std::size_t greeting_bytes = 64;
constexpr std::size_t piece_bytes = 256 * 1024;
constexpr Duration first_pause = std::chrono::milliseconds(250);  // a node's: client/session.h
constexpr Duration longest_pause = std::chrono::seconds(8);
constexpr int turn_ms = 5;

Bytes greeting() {
    Bytes bytes(greeting_bytes);
    bytes[0] = std::byte{0xFF};
    bytes[9] = std::byte{0x7F};
    bytes[10] = std::byte{3};  // version 3.0
    std::memcpy(&bytes[12], "NULL", 4);
    return bytes;
}

/// The last value of a session's update: finite, and its own.
void mark(Bytes& bytes, std::size_t number) {
    const auto value = static_cast<float>(number);
    std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
}

std::string ready() {
    using namespace std::string_literals;
    return "\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0\0"s;
}

}  // namespace

struct Swarm::Connection {
    Session* session = nullptr;
    ConnectionKind kind = ConnectionKind::control;
    int descriptor = -1;
    bool greeted = false;  // ZeroMQ's part is through
    bool open = false;     // ours too
    std::optional<SecureChannel> channel;
    Bytes in;                // what is read whole, as far as it has come: greeting, a frame's head, a command
    bool in_frame = false;   // its head has been read
    bool is_command = false;
    std::uint64_t left = 0;  // of the frame's body
    Bytes out;               // what the socket has not taken yet
    std::size_t written = 0;
    bool watching_out = false;
};

struct Swarm::Session {
    std::size_t number = 0;
    Digest digest;  // of its update
    std::optional<ChannelContext> context;
    Connection control;
    Connection bulk;
    bool welcomed = false;
    bool attached = false;
    std::uint64_t number_there = 0;
    std::optional<Assign> assign;
    std::uint64_t model_bytes = 0;
    bool has_model = false;
    Instant next_beat{};
    Instant connect_at{};
    Duration pause = first_pause;
};

Result<std::unique_ptr<Swarm>> Swarm::make(const Authority& authority, std::size_t sessions,
                                           DatasetDeclaration dataset) {
    auto swarm = std::make_unique<Swarm>();
    swarm->dataset_ = std::move(dataset);
    swarm->poll_ = epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i < sessions; ++i) {
        Credentials made{.identity = {authority.federation, Role::client, fmt::format("swarm-{}", i)},
                         .key = make_key(),
                         .certificate = {},
                         .authority_certificate = authority.certificate};
        TRY_ASSIGN(made.certificate,
                   issue_certificate(authority, made.key.public_key, made.identity, wall_clock_unix_s()));
        auto session = std::make_unique<Session>();
        session->number = i;
        TRY_ASSIGN(session->context, ChannelContext::connecting(made));
        session->control = {.session = session.get(), .kind = ConnectionKind::control};
        session->bulk = {.session = session.get(), .kind = ConnectionKind::bulk};
        session->connect_at = never;
        swarm->sessions_.push_back(std::move(session));
    }
    return swarm;
}

Swarm::~Swarm() {
    for (const auto& session : sessions_) {
        for (const auto* connection : {&session->control, &session->bulk}) {
            if (connection->descriptor >= 0) {
                ::close(connection->descriptor);
            }
        }
    }
    ::close(poll_);
}

void Swarm::connect(const Address& to) {
    to_ = to;
    for (const auto& session : sessions_) {
        session->connect_at = real_now();
    }
}

void Swarm::attach() {
    for (const auto& session : sessions_) {
        if (const auto opened = open(session->bulk); !opened) {
            complaint_ = opened.error().message;
        }
    }
}

void Swarm::prepare(SwarmUpdate update) {
    update_ = std::move(update);
    auto bytes = update_.bytes;
    for (const auto& session : sessions_) {
        mark(bytes, session->number);
        session->digest = sha256(bytes);
    }
}

void Swarm::offer() {
    for (const auto& session : sessions_) {
        if (!session->has_model) {
            continue;
        }
        HeldUpdate held{.experiment = session->assign->lease.experiment, .round = session->assign->lease.round};
        held.digest = session->digest;
        held.bytes = update_.bytes.size();
        held.weight = 1;
        held.start_model = update_.start_model;
        send(session->control, Offer{session->assign->lease, held});
    }
}

bool Swarm::run(Duration bound, const std::function<bool()>& over) {
    std::array<epoll_event, 256> happened{};
    for (const auto deadline = real_now() + bound; !over();) {
        const auto now = real_now();
        if (now >= deadline) {
            return false;
        }
        const int count = epoll_wait(poll_, happened.data(), static_cast<int>(happened.size()), turn_ms);
        for (int i = 0; i < count; ++i) {
            auto& connection = *static_cast<Connection*>(happened[static_cast<std::size_t>(i)].data.ptr);
            if ((happened[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) {
                write(connection);
            }
            read(connection);
        }
        for (const auto& session : sessions_) {
            beat(*session, now);
        }
    }
    return true;
}

/// What the clock asks of a session: a heartbeat, or another attempt.
void Swarm::beat(Session& session, Instant now) {
    if (now >= session.connect_at) {
        session.connect_at = never;
        if (const auto opened = open(session.control); !opened) {
            complaint_ = opened.error().message;
        }
    }
    if (session.welcomed && now >= session.next_beat) {
        const auto interval = std::chrono::milliseconds(session.assign ? 500 : 2000);
        session.next_beat = now + interval;
        send(session.control, Heartbeat{1, false});
    }
}

// ---------------------------------------------------------------- sockets

Status Swarm::open(Connection& connection) {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(to_.port);
    inet_pton(AF_INET, to_.host.c_str(), &to.sin_addr);
    const int one = 1;
    if (descriptor < 0 || setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        (::connect(descriptor, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS)) {
        return fail(ErrorKind::io, "cannot_connect", "cannot connect: " + std::string(std::strerror(errno)));
    }
    connection.descriptor = descriptor;
    connection.greeted = connection.open = connection.watching_out = connection.in_frame = false;
    connection.in.clear();
    connection.out = greeting();
    connection.written = 0;
    connection.channel.emplace(*connection.session->context, wall_clock_unix_s());
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
    epoll_ctl(poll_, EPOLL_CTL_ADD, descriptor, &event);
    write(connection);
    return {};
}

/// A session without its control connection begins anew; a bulk connection that goes is worth a complaint.
void Swarm::lose(Connection& connection, const std::string& why) {
    if (connection.descriptor < 0) {
        return;
    }
    ::close(std::exchange(connection.descriptor, -1));
    auto& session = *connection.session;
    if (connection.kind == ConnectionKind::bulk) {
        complaint_ = why;
        attached_ -= std::exchange(session.attached, false) ? 1 : 0;
        return;
    }
    welcomed_ -= std::exchange(session.welcomed, false) ? 1 : 0;
    lose(session.bulk, why);
    // The jitter is the session's number: as spread as a node's, and the same in every run.
    const auto jitter = session.pause / 2 * static_cast<int>(session.number % 64) / 64;
    session.connect_at = real_now() + session.pause - jitter;
    session.pause = std::min(2 * session.pause, longest_pause);
}

void Swarm::write(Connection& connection) {
    while (connection.descriptor >= 0 && connection.written < connection.out.size()) {
        const auto count = ::send(connection.descriptor, connection.out.data() + connection.written,
                                  connection.out.size() - connection.written, MSG_NOSIGNAL);
        if (count < 0 && (errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN)) {
            break;
        }
        if (count < 0) {
            return lose(connection, std::strerror(errno));
        }
        connection.written += static_cast<std::size_t>(count);
    }
    const bool waits = connection.written < connection.out.size();
    if (!waits) {
        connection.out.clear();
        connection.written = 0;
    }
    if (connection.descriptor >= 0 && waits != connection.watching_out) {
        connection.watching_out = waits;
        epoll_event event{.events = waits ? EPOLLIN | EPOLLOUT : EPOLLIN, .data = {.ptr = &connection}};
        epoll_ctl(poll_, EPOLL_CTL_MOD, connection.descriptor, &event);
    }
}

void Swarm::read(Connection& connection) {
    while (connection.descriptor >= 0) {
        const auto count = ::recv(connection.descriptor, buffer_.data(), buffer_.size(), 0);
        if (count < 0 && errno == EAGAIN) {
            return;
        }
        if (count <= 0) {
            return lose(connection, count == 0 ? "closed" : std::strerror(errno));
        }
        auto come = ByteView(buffer_).first(static_cast<std::size_t>(count));
        while (connection.descriptor >= 0 && take(connection, come)) {
        }
        if (static_cast<std::size_t>(count) < buffer_.size()) {
            return;  // all of it: what comes now is told of
        }
    }
}

/// Up to `size` bytes of what is read whole. False when they have not all come.
bool Swarm::gather(Connection& connection, std::size_t size, ByteView& come) {
    const auto part = come.first(std::min(come.size(), size - connection.in.size()));
    connection.in.insert(connection.in.end(), part.begin(), part.end());
    come = come.subspan(part.size());
    return connection.in.size() == size;
}

/// The next piece of what has come. False when it is used up. What is sealed goes to the channel as it comes.
bool Swarm::take(Connection& connection, ByteView& come) {
    if (!connection.greeted) {
        if (!gather(connection, greeting_bytes, come)) {
            return false;
        }
        connection.in.clear();
        connection.greeted = true;
        frame(connection, as_bytes(ready()), command_frame);
        return true;
    }
    if (!connection.in_frame) {
        return take_head(connection, come);
    }
    if (connection.is_command) {
        if (!gather(connection, connection.left, come)) {
            return false;
        }
        connection.in_frame = false;
        command(connection, std::exchange(connection.in, {}));
        return true;
    }
    const auto part = come.first(std::min<std::uint64_t>(come.size(), connection.left));
    come = come.subspan(part.size());
    connection.left -= part.size();
    connection.in_frame = connection.left > 0;
    if (!part.empty()) {
        receive(connection, part);
    }
    return !come.empty();
}

bool Swarm::take_head(Connection& connection, ByteView& come) {
    if (!gather(connection, 1, come)) {
        return false;
    }
    const auto flags = static_cast<std::uint8_t>(connection.in.front());
    const std::size_t head = (flags & long_frame) != 0 ? 9 : 2;
    if (!gather(connection, head, come)) {
        return false;
    }
    connection.left = 0;
    for (std::size_t i = 1; i < head; ++i) {
        connection.left = connection.left << 8 | static_cast<std::uint8_t>(connection.in[i]);
    }
    connection.in.clear();
    connection.is_command = (flags & command_frame) != 0;
    connection.in_frame = true;
    return true;
}

void Swarm::command(Connection& connection, const Bytes& body) {
    if (as_text(body).starts_with("\5READY")) {
        Bytes hello;
        (void)connection.channel->start(hello);
        frame(connection, hello, 0);
    } else if (as_text(body).starts_with("\4PING") && body.size() >= 7) {
        frame(connection, to_bytes("\4PONG" + std::string(as_text(body).substr(7))), command_frame);
    }
}

/// Straight to the socket where nothing waits: what it does not take is kept.
void Swarm::frame(Connection& connection, ByteView body, std::uint8_t flags) {
    const bool is_long = body.size() > 255;
    Bytes head{static_cast<std::byte>(flags | (is_long ? long_frame : 0))};
    for (int shift = is_long ? 56 : 0; shift >= 0; shift -= 8) {
        head.push_back(static_cast<std::byte>(body.size() >> shift));
    }
    std::size_t gone = 0;
    if (connection.descriptor >= 0 && connection.out.empty()) {
        std::array<iovec, 2> parts{{{head.data(), head.size()}, {const_cast<std::byte*>(body.data()), body.size()}}};
        const msghdr message{.msg_iov = parts.data(), .msg_iovlen = parts.size()};
        const auto count = ::sendmsg(connection.descriptor, &message, MSG_NOSIGNAL);
        gone = count > 0 ? static_cast<std::size_t>(count) : 0;  // an error comes again, at the next write
    }
    for (const auto& part : {ByteView(head), body}) {
        const auto skipped = std::min(gone, part.size());
        gone -= skipped;
        connection.out.insert(connection.out.end(), part.begin() + static_cast<std::ptrdiff_t>(skipped), part.end());
    }
    if (!connection.out.empty()) {
        write(connection);
    }
}

// ---------------------------------------------------------------- messages

void Swarm::receive(Connection& connection, ByteView sealed) {
    Bytes answer;
    std::vector<SharedBytes> messages;
    const auto status = connection.channel->receive(sealed, answer, messages);
    if (!answer.empty()) {
        frame(connection, answer, 0);
    }
    if (!connection.open && connection.channel->is_open()) {
        connection.open = true;
        greet(connection);
    }
    for (const auto& bytes : messages) {
        if (auto message = decode_received(bytes)) {
            handle(connection, *std::move(message));
        }
    }
    if (!status && connection.descriptor >= 0) {
        lose(connection, status.error().message);
    }
}

void Swarm::greet(Connection& connection) {
    if (connection.kind == ConnectionKind::bulk) {
        send(connection, Attach{connection.session->number_there});
        connection.session->attached = true;
        ++attached_;
        return;
    }
    Hello hello;
    hello.software = "causeway bench";
    hello.datasets = {dataset_};
    send(connection, hello);
}

void Swarm::send(Connection& connection, const Message& message) {
    if (connection.descriptor < 0 || !connection.open) {
        return;
    }
    Bytes sealed;
    const auto payload = payload_of(message).value_or(ByteView());
    if (const auto status = connection.channel->send(encode_header(message), payload, sealed); !status) {
        return lose(connection, status.error().message);
    }
    frame(connection, sealed, 0);
}

void Swarm::handle(Connection& connection, Message&& message) {
    auto& session = *connection.session;
    std::visit(Overloaded{[&](const Welcome& welcome) {
                              session.number_there = welcome.session;
                              session.welcomed = true;
                              session.pause = first_pause;
                              session.next_beat = real_now() + std::chrono::milliseconds(session.number % 2000);
                              ++welcomed_;
                          },
                          [&](const Heartbeat& beat) {
                              if (beat.asks) {
                                  send(connection, Heartbeat{1, false});
                              }
                          },
                          [&](const Assign& assign) {
                              ++assigned_;
                              assignment_ = assign;
                              session.assign = assign;
                              send(connection, Progress{assign.lease, 0, 0, 0});
                              fetch(session);
                          },
                          [&](const Chunk& chunk) {
                              session.model_bytes += chunk.payload.size();
                              if (session.model_bytes == chunk.total) {
                                  session.has_model = true;
                                  ++models_;
                                  send(connection, TransferEnd{chunk.transfer, "", "", true});
                              } else {
                                  send(connection, Credit{chunk.transfer, 1});
                              }
                          },
                          [&](const Pull& pull) { serve(session, pull); },
                          [&](const Committed& committed) {
                              committed_ += committed.counted ? 1 : 0;
                              session.assign.reset();
                          },
                          [&](const Refused& refused) { complaint_ = refused.message; },
                          [&](const Dropped& dropped) { complaint_ = dropped.message; },
                          [&](const ErrorNotice& notice) { complaint_ = notice.message; }, [](const auto&) {}},
               message);
}

void Swarm::fetch(Session& session) {
    session.model_bytes = 0;
    session.has_model = false;
    send(session.bulk, Pull{1, session.assign->model, 0, 8});
}

/// The window of a pull covers the whole of an update here.
void Swarm::serve(Session& session, const Pull& pull) {
    const auto total = update_.bytes.size();
    for (std::size_t at = pull.offset; at < total; at += piece_bytes) {
        const auto piece = ByteView(update_.bytes).subspan(at, std::min(piece_bytes, total - at));
        Chunk chunk{pull.transfer, at, total, {nullptr, piece}};
        if (at + piece.size() == total) {
            auto last = to_bytes(piece);
            mark(last, session.number);
            chunk.payload = std::move(last);
        }
        send(session.bulk, chunk);
    }
}

}  // namespace causeway::cli
