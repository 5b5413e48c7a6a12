// Streams over real sockets on loopback. Every wait has a deadline; nothing sleeps.
#include <catch2/catch.hpp>

#include "tests/wire/link_fixtures.h"
#include "wire/streams.h"

namespace causeway {
namespace {

constexpr std::uint64_t streams_experiment = 7;

StreamData message(std::size_t size, std::uint32_t batch = 0) {
    return {{1, streams_experiment, 2, 1}, 1, 0, 0, batch, 0, 8, 0, size, Bytes(size, static_cast<std::byte>(batch))};
}

/// A node's link and streams, and what they tell, by queue.
struct StreamNode {
    Credentials credentials;
    std::shared_ptr<LinkEvents> control = std::make_shared<LinkEvents>(4096);
    std::shared_ptr<LinkEvents> events = std::make_shared<LinkEvents>(64);
    BoundedQueue<StreamData> delivered{4096};
    BoundedQueue<Error> lost{4096};
    std::unique_ptr<Link> link;
    std::unique_ptr<Streams> streams;

    explicit StreamNode(Credentials own, std::optional<Address> listen = {}) : credentials(std::move(own)) {
        LinkOptions options{credentials, std::move(listen), {}, [] { return test_now_s; }};
        link = std::move(*Link::start(std::move(options), {.control = control, .bulk = nullptr, .streams = events}));
        streams = std::make_unique<Streams>(
            *link, events,
            StreamCallbacks{[this](const std::string&, StreamData m) { delivered.push(std::move(m)); },
                            [this](const std::string&, const Error& why) { lost.push(why); }});
    }
    ~StreamNode() {
        streams.reset();
        link.reset();
    }
    StreamNode(const StreamNode&) = delete;
    StreamNode& operator=(const StreamNode&) = delete;
    [[nodiscard]] RosterEntry entry(std::uint32_t expires_ms = 60'000) const {
        std::vector<std::string> addresses;
        if (link->port() != 0) {
            addresses.push_back(Address{"127.0.0.1", link->port()}.text());
        }
        return {credentials.identity.node,
                std::string(to_string(credentials.identity.role)),
                certificate_fingerprint(credentials.certificate),
                streams_experiment,
                addresses,
                expires_ms};
    }
    std::optional<StreamData> take() { return delivered.pop_for(test_deadline); }
    std::optional<Error> take_loss() { return lost.pop_for(test_deadline); }
};

struct Mesh {
    Federation federation;
    StreamNode host{federation.node(Role::host, "host-1"), Address{"127.0.0.1", 0}};
    StreamNode client{federation.node(Role::client, "site-a")};

    void rosters(std::uint32_t expires_ms = 60'000) {
        host.streams->roster({{client.entry(expires_ms)}}, real_now());
        (void)host.streams->routes();  // it has the roster before the client dials: no attempt is refused
        client.streams->roster({{host.entry(expires_ms)}}, real_now());
    }
};

TEST_CASE("messages of all sizes travel both ways between two nodes, whole and in order", "[wire][streams]") {
    Mesh mesh;
    mesh.rosters();
    std::uint32_t batch = 0;
    for (const std::size_t size : {std::size_t{1}, std::size_t{65'536}, max_chunk_bytes, 9 * max_chunk_bytes + 5}) {
        mesh.client.streams->send("host-1", message(size, ++batch));
        const auto up = mesh.host.take();
        REQUIRE(up.has_value());
        CHECK(*up == message(size, batch));
        mesh.host.streams->send("site-a", message(size, batch));
        const auto down = mesh.client.take();
        REQUIRE(down.has_value());
        CHECK(*down == message(size, batch));
    }
    for (std::uint32_t i = 0; i < 500; ++i) {
        mesh.client.streams->send("host-1", message(3000, i));
    }
    for (std::uint32_t i = 0; i < 500; ++i) {
        const auto up = mesh.host.take();
        REQUIRE(up.has_value());
        REQUIRE(up->batch == i);
    }
    CHECK(mesh.client.streams->routes() ==
          std::vector<std::string>{"host-1 direct " + Address{"127.0.0.1", mesh.host.link->port()}.text()});
    CHECK(mesh.host.streams->routes().size() == 1);
    CHECK(mesh.host.streams->traffic().received > 10 * max_chunk_bytes);
    CHECK(mesh.host.link->traffic().received == mesh.host.streams->traffic().received);
}

TEST_CASE("a message that comes before the rosters do is not lost", "[wire][streams]") {
    Mesh mesh;
    mesh.client.streams->roster({{mesh.host.entry()}}, real_now());
    mesh.client.streams->send("host-1", message(1000));  // the host does not know of it yet
    CHECK_FALSE(mesh.host.delivered.pop_for(std::chrono::milliseconds(300)).has_value());
    mesh.host.streams->roster({{mesh.client.entry()}}, real_now());
    CHECK(mesh.host.take().has_value());
}

TEST_CASE("a node that stops is lost to the other at once", "[wire][streams]") {
    Mesh mesh;
    mesh.rosters();
    mesh.client.streams->send("host-1", message(1000));
    REQUIRE(mesh.host.take().has_value());
    mesh.client.streams.reset();
    mesh.client.link.reset();
    const auto why = mesh.host.take_loss();
    REQUIRE(why.has_value());
    CHECK(why->kind == ErrorKind::disconnected);
}

TEST_CASE("when its line of the roster expires a stream ends, at both ends", "[wire][streams]") {
    Mesh mesh;
    mesh.rosters(1500);
    mesh.client.streams->send("host-1", message(1000));
    REQUIRE(mesh.host.take().has_value());
    CHECK(mesh.host.take_loss()->code == "roster_expired");
    CHECK(mesh.client.take_loss()->code == "roster_expired");
}

/// Two nodes that nobody can connect to, with sessions at a coordinator.
struct Islands {
    Federation federation;
    TestLink coordinator{federation.node(Role::coordinator, "coordinator"), Address{"127.0.0.1", 0}};
    StreamNode host{federation.node(Role::host, "host-1")};
    StreamNode client{federation.node(Role::client, "site-a")};

    void join(StreamNode& node) {
        const auto session = node.link->connect({.to = coordinator.address()});
        REQUIRE(TestLink::wait_for<PeerOpened>(*node.control).has_value());
        node.link->send(session, Hello{});
        const auto opened = coordinator.wait<PeerOpened>();
        REQUIRE(opened.has_value());
        node.streams->attach(session, coordinator.address(), opened->connection);
    }
    Islands() {
        join(host);
        join(client);
        host.streams->roster({{client.entry()}}, real_now());
        client.streams->roster({{host.entry()}}, real_now());
    }
    void allow(std::uint64_t quota = 1 << 30) {
        coordinator.link->allow_relays(
            {{"site-a", "host-1", streams_experiment, real_now() + std::chrono::seconds(60), quota}});
    }
};

TEST_CASE("two nodes that nobody can connect to exchange messages through the coordinator", "[wire][relay]") {
    Islands islands;
    islands.allow();
    std::uint32_t batch = 0;
    for (const std::size_t size : {std::size_t{1}, std::size_t{65'536}, 9 * max_chunk_bytes + 5}) {
        islands.client.streams->send("host-1", message(size, ++batch));
        const auto up = islands.host.take();
        REQUIRE(up.has_value());
        CHECK(*up == message(size, batch));
        islands.host.streams->send("site-a", message(size, batch));
        const auto down = islands.client.take();
        REQUIRE(down.has_value());
        CHECK(*down == message(size, batch));
    }
    CHECK(islands.client.streams->routes() == std::vector<std::string>{"host-1 relayed"});
    CHECK(islands.host.streams->routes() == std::vector<std::string>{"site-a relayed"});
    const auto use = islands.coordinator.link->relay_use();
    REQUIRE(use.size() == 1);
    CHECK(use.front().bytes > 18 * max_chunk_bytes);
    CHECK(islands.coordinator.link->traffic().received > 18 * max_chunk_bytes);
    CHECK_FALSE(islands.coordinator.wait_message<RelayFrame>(std::chrono::milliseconds(50)).has_value());
}

TEST_CASE("when the relay does not help either, the owner hears why", "[wire][relay]") {
    Islands islands;
    SECTION("the coordinator has not allowed the pair") {
        islands.client.streams->send("host-1", message(10));
        const auto why = islands.client.take_loss();
        REQUIRE(why.has_value());
        CHECK(why->code == "no_route");
        CHECK(why->message.find("by relay: not_on_roster") != std::string::npos);
    }
    SECTION("the quota is used up") {
        islands.allow(100'000);
        islands.client.streams->send("host-1", message(200'000));
        const auto why = islands.client.take_loss();
        REQUIRE(why.has_value());
        CHECK(why->code == "relay_quota");
    }
    SECTION("the session ends") {
        islands.allow();
        islands.client.streams->send("host-1", message(10));
        REQUIRE(islands.host.take().has_value());
        islands.client.link.reset();
        CHECK(islands.host.take_loss().has_value());
    }
}

TEST_CASE("a node is no coordinator, and a coordinator no node", "[wire][streams]") {
    Mesh mesh;
    mesh.rosters();
    TestLink coordinator(mesh.federation.node(Role::coordinator, "coordinator"), Address{"127.0.0.1", 0});
    StreamPeer posing{"coordinator", Role::host, {}, streams_experiment, real_now() + std::chrono::seconds(60)};
    mesh.client.link->connect({.to = coordinator.address(), .kind = ConnectionKind::stream, .peer = posing});
    mesh.client.link->connect({.to = {"127.0.0.1", mesh.host.link->port()}});
    const auto session = TestLink::wait_for<PeerClosed>(*mesh.client.control);
    REQUIRE(session.has_value());
    CHECK(session->why.code == "wrong_role");
    CHECK_FALSE(coordinator.wait<PeerOpened>(std::chrono::milliseconds(100)).has_value());
}

}  // namespace
}  // namespace causeway
