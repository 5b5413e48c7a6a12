// The link over real sockets on loopback. Every wait has a deadline; nothing sleeps.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/wire/link_fixtures.h"

namespace causeway {
namespace {

const Address any_port{"*", 0};

struct LinkWorld {
    Federation federation;
    TestLink server;

    explicit LinkWorld(LinkLimits limits = {})
        : server(federation.node(Role::coordinator, "coordinator"), any_port, limits) {}
    [[nodiscard]] std::unique_ptr<TestLink> client(const std::string& name, Role role = Role::client) const {
        return std::make_unique<TestLink>(federation.node(role, name));
    }
};

TEST_CASE("a node says hello and messages of all sizes travel both ways in order", "[wire][link]") {
    LinkWorld world;
    const auto client = world.client("site-a");
    const auto id = client->link->connect({.to = world.server.address()});
    const auto up = client->wait<PeerOpened>();
    REQUIRE(up.has_value());
    CHECK(up->peer->identity.role == Role::coordinator);
    client->link->send(id, Hello{.software = "test"});
    const auto opened = world.server.wait<PeerOpened>();
    REQUIRE(opened.has_value());
    CHECK(opened->peer->identity == Identity{"clinic", Role::client, "site-a"});
    CHECK(opened->kind == ConnectionKind::control);
    CHECK(opened->address.starts_with("127.0.0.1:"));
    CHECK(world.server.wait_message<Hello>()->software == "test");

    for (const std::size_t size : {1u, 100u, 10'000u, 100'000u}) {
        client->link->send(id, Request{size, "echo", std::string(size, 'x')});
        const auto request = world.server.wait_message<Request>();
        REQUIRE(request.has_value());
        CHECK(request->body.size() == size);
        world.server.link->send(opened->connection, Reply{request->id, true, request->body, {}});
        const auto reply = client->wait_message<Reply>();
        REQUIRE(reply.has_value());
        CHECK(reply->id == size);
        CHECK(reply->body.size() == size);
    }
    for (std::uint64_t i = 0; i < 500; ++i) {
        client->link->send(id, Request{i, "burst", "{}"});
    }
    for (std::uint64_t i = 0; i < 500; ++i) {
        REQUIRE(world.server.wait_message<Request>()->id == i);
    }
    CHECK(world.server.link->traffic().received > 110'000);
    CHECK(world.server.link->traffic().sent > 110'000);
    CHECK(client->link->traffic().sent > 110'000);
}

TEST_CASE("who asks to hear everybody out is answered behind what had come, and though more keeps coming",
          "[wire][link]") {
    LinkWorld world;
    world.server.link->listen();
    REQUIRE(world.server.wait<PeersRead>().has_value());  // nobody is there
    const auto client = world.client("site-a");
    const auto id = client->link->connect({.to = world.server.address()});
    REQUIRE(client->wait<PeerOpened>().has_value());
    client->link->send(id, Hello{.software = "test"});
    REQUIRE(world.server.wait_message<Hello>().has_value());
    for (std::uint64_t i = 0; i < 2000; ++i) {
        client->link->send(id, Request{i, "burst", "{}"});
    }
    REQUIRE(world.server.wait_message<Request>().has_value());  // they are on their way
    world.server.link->listen();
    REQUIRE(world.server.wait<PeersRead>().has_value());
}

TEST_CASE("an owner may take events into a queue of its own, and one that is full is asked again", "[wire][link]") {
    using Mixed = std::variant<int, LinkEvent>;
    const auto mixed = std::make_shared<BoundedQueue<Mixed>>(1);
    const auto take = [mixed](LinkEvent& event) { return offer<BoundedQueue<Mixed>, Mixed>(*mixed, event); };
    LinkEvent event = PeerClosed{.connection = 3, .why = {ErrorKind::io, "code", "words"}};
    mixed->push(1);
    CHECK_FALSE(take(event));
    CHECK(std::get<PeerClosed>(event).why.code == "code");  // untouched

    LinkWorld world;
    const auto link = *Link::start({.credentials = world.federation.node(Role::client, "site-a"),
                                    .unix_now = [] { return test_now_s; }},
                                   {.bulk = std::make_shared<LinkEvents>(8), .take_control = take});
    const auto id = link->connect({.to = world.server.address()});
    CHECK(std::get<int>(*mixed->pop()) == 1);  // now there is room
    const auto opened = mixed->pop_for(test_deadline);
    REQUIRE(opened.has_value());
    CHECK(std::get<PeerOpened>(std::get<LinkEvent>(*opened)).connection == id);
    link->send({{id, Hello{.software = "first"}}, {id, Request{1, "second", "{}"}}});
    CHECK(world.server.wait_message<Hello>()->software == "first");
    CHECK(world.server.wait_message<Request>()->verb == "second");
}

TEST_CASE("a node that stops, or is torn off, is gone at once with a reason", "[wire][link]") {
    LinkWorld world;
    auto client = world.client("site-a");
    auto session = open_session(*client, world.server);
    client->link->close(session.at_client, bye("done for today"));
    auto closed = world.server.wait<PeerClosed>();
    REQUIRE(closed.has_value());
    CHECK(closed->connection == session.at_server);
    CHECK(closed->why.code == "bye");
    CHECK(closed->why.message == "done for today");
    CHECK(closed->traffic.received > 0);

    session = open_session(*client, world.server);
    client.reset();  // the whole link goes
    CHECK(world.server.wait<PeerClosed>()->connection == session.at_server);
}

TEST_CASE("the coordinator closes with a code, and the node learns it", "[wire][link]") {
    LinkWorld world;
    const auto client = world.client("site-a");
    const auto session = open_session(*client, world.server);
    world.server.link->close(session.at_server, {ErrorKind::refused, "revoked", "this certificate is revoked"});
    const auto closed = client->wait<PeerClosed>();
    REQUIRE(closed.has_value());
    CHECK(closed->why.code == "revoked");
    CHECK(closed->why.kind == ErrorKind::refused);
}

TEST_CASE("an address where nobody listens is unreachable, a coordinator of another federation is refused",
          "[wire][link]") {
    LinkWorld world;
    const auto client = world.client("site-a");
    client->link->connect({.to = {"127.0.0.1", 1}});
    CHECK(client->wait<PeerClosed>()->why.code == "unreachable");

    const LinkWorld other;
    client->link->connect({.to = other.server.address()});
    CHECK(client->wait<PeerClosed>()->why.code == "unknown_ca");

    TestLink posing(world.federation.node(Role::client, "mallory"), any_port);
    client->link->connect({.to = posing.address()});
    CHECK(client->wait<PeerClosed>()->why.code == "wrong_role");
    CHECK(posing.control->size() == 0);
}

TEST_CASE("a second start of one identity is refused while the first answers", "[wire][link]") {
    LinkWorld world;
    const auto node = world.federation.node(Role::client, "site-a");
    TestLink first(node), second(node);
    const auto session = open_session(first, world.server);
    const auto id = second.link->connect({.to = world.server.address()});
    REQUIRE(second.wait<PeerOpened>().has_value());
    second.link->send(id, Hello{});
    const auto refused = second.wait<PeerClosed>();
    REQUIRE(refused.has_value());
    CHECK(refused->why.code == "identity_in_use");
    first.link->send(session.at_client, Request{1, "still", "{}"});
    CHECK(world.server.wait_message<Request>()->verb == "still");
}

TEST_CASE("a node stopped and started again with its identity is accepted every time", "[wire][link]") {
    LinkWorld world;
    const auto node = world.federation.node(Role::client, "site-a");
    ConnectionId last = 0;
    for (int i = 0; i < 20; ++i) {
        TestLink start(node);
        const auto session = open_session(start, world.server);
        CHECK(session.at_server > last);
        last = session.at_server;
    }
}

TEST_CASE("operators may run two commands at once", "[wire][link]") {
    LinkWorld world;
    const auto node = world.federation.node(Role::operator_, "admin");
    TestLink first(node), second(node);
    open_session(first, world.server);
    open_session(second, world.server);
}

TEST_CASE("a bulk connection needs the live session of the same identity", "[wire][link]") {
    LinkWorld world;
    const auto client = world.client("site-a");
    const auto thief = world.client("site-b");
    const auto session = open_session(*client, world.server);
    open_session(*thief, world.server);

    const auto bulk = client->link->connect({.to = world.server.address(),
                                             .kind = ConnectionKind::bulk,
                                             .control = session.at_client,
                                             .session = session.at_server});
    const auto opened = TestLink::wait_for<PeerOpened>(*world.server.bulk);
    REQUIRE(opened.has_value());
    CHECK(opened->control == session.at_server);
    CHECK(opened->peer->identity.node == "site-a");
    client->link->send(bulk, Pull{1, sha256("x"), 0, 8});
    CHECK(TestLink::wait_for<PeerMessage>(*world.server.bulk).has_value());

    thief->link->connect({.to = world.server.address(), .kind = ConnectionKind::bulk, .session = session.at_server});
    CHECK(TestLink::wait_for<PeerClosed>(*thief->bulk)->why.code == "unknown_session");
    client->link->connect({.to = world.server.address(), .kind = ConnectionKind::bulk, .session = 999'999});
    CHECK(TestLink::wait_for<PeerClosed>(*client->bulk)->why.code == "unknown_session");

    client->link->close(session.at_client, bye("end"));  // the session takes its bulk connections along
    CHECK(TestLink::wait_for<PeerClosed>(*world.server.bulk)->connection == opened->connection);
}

TEST_CASE("a bad message of an admitted peer is answered; the ninth closes the connection", "[wire][link]") {
    LinkWorld world;
    const auto client = world.client("site-a");
    const auto session = open_session(*client, world.server);
    client->link->send(session.at_client, Pull{1, sha256("x"), 0, 8});  // not on a control connection
    CHECK(client->wait_message<ErrorNotice>()->code == "wrong_connection");
    client->link->send(session.at_client, Progress{.step = 9, .steps = 2});  // means nothing
    CHECK(client->wait_message<ErrorNotice>()->code == "bad_message");
    for (int i = 0; i < 7; ++i) {
        client->link->send(session.at_client, Progress{.step = 9, .steps = 2});
    }
    CHECK(world.server.wait<PeerClosed>()->why.code == "bad_message");
}

/// A TCP connection that says what it likes.
struct RawPeer {
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);

    explicit RawPeer(std::uint16_t port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
        timeval deadline{10, 0};
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof(deadline));
    }
    ~RawPeer() { ::close(descriptor); }
    RawPeer(const RawPeer&) = delete;
    RawPeer& operator=(const RawPeer&) = delete;

    bool say(ByteView bytes) const { return ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0; }
    /// ZMTP 3.0 greeting and a DEALER's READY: from here on any frame reaches the link.
    void speak_zmtp() const {
        Bytes greeting(64);
        greeting[0] = std::byte{0xff};
        greeting[9] = std::byte{0x7f};
        greeting[10] = std::byte{3};
        std::memcpy(&greeting[12], "NULL", 4);
        say(greeting);
        const std::string_view ready(
            "\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06"
            "DEALER",
            30);
        say(as_bytes(ready));
    }
    /// Everything until the other end closes; false when it did not within the deadline.
    [[nodiscard]] bool is_closed(std::size_t* heard = nullptr) const {
        std::array<char, 4096> buffer{};
        ssize_t count = 0;
        while ((count = recv(descriptor, buffer.data(), buffer.size(), 0)) > 0) {
            if (heard) {
                *heard += static_cast<std::size_t>(count);
            }
        }
        return count == 0 || errno == ECONNRESET;
    }
};

TEST_CASE("plaintext, garbage and half-open peers are expelled while others are served", "[wire][link]") {
    LinkWorld world({.handshake = std::chrono::milliseconds(400)});
    const auto client = world.client("site-a");
    const auto session = open_session(*client, world.server);
    const auto serves = [&] {
        client->link->send(session.at_client, Request{1, "ping", "{}"});
        return world.server.wait_message<Request>().has_value();
    };
    {
        const RawPeer http(world.server.link->port());
        http.say(as_bytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        CHECK(serves());
        CHECK(http.is_closed());
    }
    {
        const RawPeer plaintext(world.server.link->port());
        plaintext.speak_zmtp();
        plaintext.say(as_bytes(std::string_view("\x00\x05hello", 7)));  // a frame that is not TLS
        std::size_t heard = 0;
        CHECK(serves());
        CHECK(plaintext.is_closed(&heard));
        CHECK(heard < 200);  // ZeroMQ's own greeting and nothing of ours
    }
    {
        const RawPeer silent(world.server.link->port());
        CHECK(serves());
        CHECK(silent.is_closed());
    }
    {
        const RawPeer half(world.server.link->port());
        half.speak_zmtp();
        half.say(as_bytes(std::string_view("\x00\x03\x16\x03\x01", 5)));  // the beginning of a record
        CHECK(serves());
        CHECK(half.is_closed());
    }
    {
        const RawPeer huge(world.server.link->port());
        huge.speak_zmtp();
        huge.say(as_bytes(std::string_view("\x02\x20\x00\x00\x00\x00\x00\x00\x00", 9)));  // 2^61 bytes announced
        CHECK(serves());
        CHECK(huge.is_closed());
    }
    CHECK(world.server.control->size() == 0);  // nobody heard of them
}

TEST_CASE("a peer that hides a flood in one endless multipart message is expelled", "[wire][link]") {
    LinkWorld world({.handshake = std::chrono::seconds(60)});
    const RawPeer flood(world.server.link->port());
    flood.speak_zmtp();
    Bytes part(256 * 1024);
    const std::array<unsigned char, 9> head = {0x03, 0, 0, 0, 0, 0, 0x04, 0, 0};  // large, more follows
    std::size_t sent = 0;
    while (flood.say(std::as_bytes(std::span(head))) && sent < (std::size_t{256} << 20)) {
        std::size_t at = 0;
        while (at < part.size()) {
            const auto count = ::send(flood.descriptor, part.data() + at, part.size() - at, MSG_NOSIGNAL);
            if (count <= 0) {
                break;
            }
            at += static_cast<std::size_t>(count);
        }
        if (at < part.size()) {
            break;
        }
        sent += at;
    }
    CHECK(sent < (std::size_t{256} << 20));  // it was cut off before
}

TEST_CASE("strangers beyond the limit are turned away, and room comes back", "[wire][link]") {
    LinkWorld world({.unauthenticated = 2, .handshake = std::chrono::milliseconds(500)});
    const RawPeer one(world.server.link->port()), two(world.server.link->port());
    const RawPeer three(world.server.link->port());
    CHECK(three.is_closed());
    CHECK(one.is_closed());  // by the handshake's deadline
    const auto client = world.client("site-a");
    open_session(*client, world.server);
}

TEST_CASE("a busy port is an error that says so", "[wire][link]") {
    const LinkWorld world;
    LinkOptions options{world.federation.node(Role::coordinator, "c"), Address{"*", world.server.link->port()}, {}, {}};
    const auto second = Link::start(std::move(options), {std::make_shared<LinkEvents>(1), nullptr});
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().code == "port_in_use");
}

TEST_CASE("IPv6 is served beside IPv4", "[wire][link]") {
    LinkWorld world;
    const auto client = world.client("site-a");
    client->link->connect({.to = {"::1", world.server.link->port()}});
    const auto answer = client->control->pop_for(test_deadline);
    REQUIRE(answer.has_value());
    const auto* closed = std::get_if<PeerClosed>(&*answer);
    if (closed && closed->why.code == "unreachable") {
        WARN("this machine has no IPv6 loopback");
        return;
    }
    CHECK(std::holds_alternative<PeerOpened>(*answer));
}

TEST_CASE("addresses are read as people write them", "[wire][address]") {
    CHECK(parse_address("example.org") == Address{"example.org", 7400});
    CHECK(parse_address("example.org:99") == Address{"example.org", 99});
    CHECK(parse_address("[::1]:99") == Address{"::1", 99});
    CHECK(parse_address("[fe80::1%eth0]") == Address{"fe80::1%eth0", 7400});
    CHECK(parse_address("2001:db8::1") == Address{"2001:db8::1", 7400});
    CHECK(parse_address(":99") == Address{"*", 99});
    CHECK(parse_address("*") == Address{"*", 7400});
    CHECK(Address{"::1", 99}.text() == "[::1]:99");
    for (const auto* wrong : {"host:", "host:x", "host:70000", "[::1", "[::1]x", "a b", "host/path"}) {
        INFO(wrong);
        CHECK_FALSE(parse_address(wrong).has_value());
    }
}

}  // namespace
}  // namespace causeway
