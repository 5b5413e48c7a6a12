// Relayed streams through three link cores: two nodes that reach only the coordinator, which cannot read them.
#include <catch2/catch.hpp>

#include "tests/wire/core_fixtures.h"

namespace causeway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t core_experiment = 7;
constexpr ConnectionId session_a = 1, carrier_a = 2, session_b = 11, carrier_b = 12, stream = 50;

struct Triangle {
    Federation federation;
    Credentials own_a = federation.node(Role::client, "site-a");
    Credentials own_b = federation.node(Role::host, "host-1");
    Node coordinator{*ChannelContext::accepting(federation.node(Role::coordinator, "coordinator")), std::nullopt};
    Node a{own_a};
    Node b{own_b};
    std::vector<Bytes> forwarded;  // everything that the coordinator has sent
    Instant now = seconds(1);
    bool b_stopped = false;

    Triangle() {
        connect(a, session_a, ConnectionKind::control);
        connect(b, session_b, ConnectionKind::control);
        a.core.send(session_a, Hello{});
        b.core.send(session_b, Hello{});
        run(milliseconds(0));
        REQUIRE(coordinator.take<PeerOpened>().size() == 2);
    }
    static StreamPeer line(const Credentials& of, Instant expires = seconds(61)) {
        return {of.identity.node, of.identity.role, certificate_fingerprint(of.certificate), core_experiment, expires};
    }
    void allow(std::uint64_t quota = 1 << 30) {
        a.core.allow_streams({line(own_b)});
        b.core.allow_streams({line(own_a)});
        coordinator.core.allow_relays({{"site-a", "host-1", core_experiment, seconds(61), quota}});
    }
    void connect(Node& node, ConnectionId id, ConnectionKind kind, ConnectionId control = 0) {
        REQUIRE(coordinator.core.accept(id, "192.0.2.1:" + std::to_string(5000 + id), now));
        node.core.dial(id, {.to = {"coordinator", 7400}, .kind = kind, .control = control}, now, test_now_s);
        run(milliseconds(0));
    }
    void carriers() {
        connect(a, carrier_a, ConnectionKind::relay, session_a);
        connect(b, carrier_b, ConnectionKind::relay, session_b);
    }
    void dial(const StreamPeer& whom) {
        a.core.dial(stream, {.kind = ConnectionKind::stream, .via = carrier_a, .peer = whom}, now, test_now_s);
        run(milliseconds(0));
    }
    void pass(Node& from, Node& to, bool keep) {
        from.core.flush(now);
        for (auto& [id, frames] : from.network.sent) {
            const bool meant = &from != &coordinator || (id < 10) == (&to == &a);
            for (auto& frame : meant ? std::exchange(frames, {}) : std::deque<Bytes>()) {
                if (keep) {
                    forwarded.push_back(frame);
                }
                to.core.receive(id, frame, now, test_now_s);
            }
        }
    }
    void run(Duration length) {
        const auto end = now + length;
        do {
            now += milliseconds(10);
            for (auto* node : {&a, &b, &coordinator}) {
                if (node != &b || !b_stopped) {
                    node->core.tick(now);
                }
            }
            for (int turn = 0; turn < 40; ++turn) {
                pass(a, coordinator, false);
                if (!b_stopped) {
                    pass(b, coordinator, false);
                    pass(coordinator, b, true);
                }
                pass(coordinator, a, false);
            }
        } while (now < end);
    }
    static StreamData data(std::size_t size) {
        return {{1, core_experiment, 1, 1}, 1, 0, 0, 0, 0, 1, 0, size, Bytes(size, std::byte{7})};
    }
    static std::optional<PeerOpened> stream_of(Node& node) {
        for (auto& opened : node.take<PeerOpened>()) {
            if (opened.kind == ConnectionKind::stream) {
                return std::move(opened);
            }
        }
        return std::nullopt;
    }
    static std::string why_closed(Node& node, ConnectionKind kind = ConnectionKind::stream) {
        for (const auto& closed : node.take<PeerClosed>()) {
            if (closed.kind == kind) {
                return closed.why.code;
            }
        }
        return "";
    }
};

TEST_CASE("two nodes that reach only the coordinator have a stream through it, with each other's certificates",
          "[wire][relay]") {
    Triangle three;
    three.allow();
    three.carriers();
    three.dial(Triangle::line(three.own_b));
    const auto at_a = Triangle::stream_of(three.a);
    const auto at_b = Triangle::stream_of(three.b);
    REQUIRE(at_a.has_value());
    REQUIRE(at_b.has_value());
    CHECK(at_a->peer->fingerprint == certificate_fingerprint(three.own_b.certificate));
    CHECK(at_b->peer->identity == three.own_a.identity);
    CHECK(at_a->carrier == carrier_a);
    CHECK(at_b->carrier == carrier_b);
    CHECK(at_b->experiment == core_experiment);

    const auto before = three.a.core.stream_traffic().sent;
    std::size_t received = 0;
    for (int i = 0; i < 12; ++i) {  // beyond the window: credits come back
        three.a.core.send(stream, Triangle::data(max_chunk_bytes));
    }
    for (int i = 0; i < 20; ++i) {
        three.run(milliseconds(0));
        for (const auto& message : three.b.take<PeerMessage>()) {
            const auto* piece = std::get_if<StreamData>(&message.message);
            REQUIRE(piece != nullptr);
            CHECK(*piece == Triangle::data(max_chunk_bytes));
            ++received;
        }
    }
    CHECK(received == 12);
    const auto wire = three.a.core.stream_traffic().sent - before;
    CHECK(wire > 12 * max_chunk_bytes);
    CHECK(wire < 12 * max_chunk_bytes * 101 / 100);  // both layers of TLS: less than 1 %
    CHECK(three.a.core.traffic().sent >= three.a.core.stream_traffic().sent);
    REQUIRE(three.coordinator.core.relay_use().size() == 1);
    CHECK(three.coordinator.core.relay_use().front().bytes > 12 * max_chunk_bytes);

    three.b.core.send(at_b->connection, Triangle::data(100));
    three.run(milliseconds(0));
    CHECK(three.a.take<PeerMessage>().size() == 1);
    three.a.core.close(stream, bye("done"));
    three.run(seconds(1));
    CHECK(Triangle::why_closed(three.b) == "bye");
    CHECK(Triangle::why_closed(three.a) == "bye");
    CHECK(three.coordinator.take<PeerMessage>().size() == 2);  // the two hellos: it hears nothing of streams
}

TEST_CASE("a relayed half that stops is lost within two seconds, though relay and carrier go on", "[wire][relay]") {
    Triangle three;
    three.allow();
    three.carriers();
    three.dial(Triangle::line(three.own_b));
    three.run(seconds(10));
    REQUIRE(Triangle::why_closed(three.a).empty());
    three.b_stopped = true;
    const auto from = three.now;
    std::string why;
    while (why.empty() && three.now - from < seconds(10)) {
        three.run(milliseconds(0));
        why = Triangle::why_closed(three.a);
    }
    CHECK(why == "silent");
    CHECK(three.now - from <= seconds(2));
}

TEST_CASE("a node without a relay connection is asked for one on its control connection", "[wire][relay]") {
    Triangle three;
    three.allow();
    three.connect(three.a, carrier_a, ConnectionKind::relay, session_a);
    three.dial(Triangle::line(three.own_b));
    const auto asked = three.b.take<PeerMessage>();
    REQUIRE(asked.size() == 1);
    CHECK(asked.front().connection == session_b);
    CHECK(std::get<RelayOpen>(asked.front().message).node == "site-a");
    three.connect(three.b, carrier_b, ConnectionKind::relay, session_b);
    three.run(milliseconds(0));
    CHECK(Triangle::stream_of(three.a).has_value());
    CHECK(Triangle::stream_of(three.b).has_value());
}

TEST_CASE("a relayed stream is judged by both rosters and the relay's own list", "[wire][relay]") {
    Triangle three;
    three.allow();
    three.carriers();
    auto whom = Triangle::line(three.own_b);
    std::string expected = "not_on_roster";
    SECTION("the coordinator does not allow the pair") {
        three.coordinator.core.allow_relays({});
    }
    SECTION("the asked node's roster has not the asker") {
        three.b.core.allow_streams({});
    }
    SECTION("it has another certificate of that name") {
        three.b.core.allow_streams({Triangle::line(three.federation.node(Role::client, "site-a"))});
    }
    SECTION("the asker wants another certificate") {
        whom.fingerprint = Digest{};
        expected = "wrong_peer";
    }
    SECTION("the asker's roster has not the asked node") {
        three.a.core.allow_streams({});
    }
    three.dial(whom);
    three.run(seconds(3));
    CHECK(Triangle::why_closed(three.a) == expected);
    CHECK_FALSE(Triangle::stream_of(three.a).has_value());
    CHECK_FALSE(Triangle::stream_of(three.b).has_value());
}

TEST_CASE("relayed streams end with the relay connection, the session, and the roster", "[wire][relay]") {
    Triangle three;
    three.allow();
    three.carriers();
    three.dial(Triangle::line(three.own_b));
    REQUIRE(Triangle::stream_of(three.b).has_value());
    SECTION("the asker's relay connection") {
        three.a.core.lose(carrier_a, {ErrorKind::disconnected, "connection_lost", "gone"});
        three.coordinator.core.lose(carrier_a, {ErrorKind::disconnected, "connection_lost", "gone"});
        three.run(seconds(1));
        CHECK(Triangle::why_closed(three.a) == "connection_lost");
        CHECK(Triangle::why_closed(three.b) == "peer_gone");
    }
    SECTION("the other's session") {
        three.coordinator.core.close(session_b, {ErrorKind::refused, "revoked", "revoked"});
        three.run(seconds(3));
        CHECK(Triangle::why_closed(three.a) == "peer_gone");
        CHECK_FALSE(Triangle::why_closed(three.b).empty());
        CHECK(three.b.core.empty());
    }
    SECTION("the coordinator's list") {
        three.coordinator.core.allow_relays({});
        three.run(seconds(1));
        CHECK(Triangle::why_closed(three.a) == "roster_expired");
        CHECK(Triangle::why_closed(three.b) == "roster_expired");
    }
    SECTION("the time of both") {
        three.run(seconds(62));
        CHECK(Triangle::why_closed(three.a) == "roster_expired");
        CHECK(Triangle::why_closed(three.b) == "roster_expired");
    }
}

TEST_CASE("a relay connection needs a session, and says nothing but frames", "[wire][relay]") {
    Triangle three;
    three.allow();
    SECTION("without a session") {
        three.coordinator.core.lose(session_a, {ErrorKind::disconnected, "connection_lost", "gone"});
        three.connect(three.a, carrier_a, ConnectionKind::relay, session_a);
        three.run(seconds(3));
        CHECK(Triangle::why_closed(three.a, ConnectionKind::relay) == "unknown_session");
    }
    SECTION("too many of one session") {
        for (ConnectionId id = 2; id < 5; ++id) {
            three.connect(three.a, id, ConnectionKind::relay, session_a);
        }
        three.run(seconds(3));
        CHECK(Triangle::why_closed(three.a, ConnectionKind::relay) == "too_many_connections");
    }
    SECTION("frames of pairs that it has not") {
        three.connect(three.a, carrier_a, ConnectionKind::relay, session_a);
        for (std::size_t i = 0; i <= LinkLimits{}.bad_messages; ++i) {
            three.a.core.send(carrier_a, RelayFrame{i + 1, Bytes(10)});
            three.run(milliseconds(0));
        }
        three.run(seconds(3));
        CHECK(Triangle::why_closed(three.a, ConnectionKind::relay) == "unknown_pair");
    }
    SECTION("an opening on a control connection") {
        for (std::size_t i = 0; i <= LinkLimits{}.bad_messages; ++i) {
            three.a.core.send(session_a, RelayOpen{i + 1, "host-1", core_experiment});
            three.run(milliseconds(0));
        }
        three.run(seconds(3));
        CHECK(Triangle::why_closed(three.a, ConnectionKind::control) == "wrong_connection");
    }
}

}  // namespace
}  // namespace causeway
