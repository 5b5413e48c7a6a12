// The link's rules on a clock of our own: two cores, frames passed by hand, no sockets.
#include <catch2/catch.hpp>

#include "tests/wire/core_fixtures.h"
#include "tests/wire/link_fixtures.h"

namespace causeway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Stage {
    Federation federation;
    std::set<std::string> revoked;  // names
    Node server{*ChannelContext::accepting(federation.node(Role::coordinator, "coordinator")),
                std::nullopt,
                {},
                [this](const PeerIdentity& peer, const std::string&) {
                    return revoked.contains(peer.identity.node) ? Status(fail(ErrorKind::refused, "revoked", "revoked"))
                                                                : Status();
                }};
    std::map<ConnectionId, std::unique_ptr<Node>> clients;  // each with one connection of the same number
    std::set<ConnectionId> frozen;                          // neither hears nor speaks
    Instant now{};

    Node& dial(ConnectionId id, const std::string& name, ConnectionKind kind = ConnectionKind::control,
               std::uint64_t session = 0) {
        auto node =
            std::make_unique<Node>(std::nullopt, *ChannelContext::connecting(federation.node(Role::client, name)));
        REQUIRE(server.core.accept(id, "192.0.2.1:" + std::to_string(id), now));
        node->core.dial(id, {.to = {"server", 1}, .kind = kind, .session = session}, now, test_now_s);
        return *(clients[id] = std::move(node));
    }
    /// A node without a certificate, from `host`.
    void dial_to_enrol(ConnectionId id, const std::string& host) {
        auto node = std::make_unique<Node>(std::nullopt, std::nullopt);
        REQUIRE(server.core.accept(id, host + ":" + std::to_string(id), now));
        const auto authority_key = *certificate_key_digest(federation.authority.certificate);
        node->core.dial(id, {.to = {"server", 1}, .kind = ConnectionKind::join, .authority_key = authority_key}, now,
                        test_now_s);
        clients[id] = std::move(node);
    }
    /// Dials and says hello.
    Node& join(ConnectionId id, const std::string& name) {
        auto& node = dial(id, name);
        run(milliseconds(0));
        node.core.send(id, Hello{});
        run(milliseconds(0));
        return node;
    }
    void pass_frames() {
        for (int turn = 0; turn < 12; ++turn) {
            server.core.flush(now);
            for (auto& [id, node] : clients) {
                if (frozen.contains(id)) {
                    continue;
                }
                node->core.flush(now);
                for (auto& frame : std::exchange(node->network.sent[id], {})) {
                    server.core.receive(id, frame, now, test_now_s);
                }
                for (auto& frame : std::exchange(server.network.sent[id], {})) {
                    node->core.receive(id, frame, now, test_now_s);
                }
            }
        }
    }
    /// Lets time pass in steps of 10 ms.
    void run(Duration length) {
        const auto end = now + length;
        do {
            now += milliseconds(10);
            server.core.tick(now);
            for (auto& [id, node] : clients) {
                if (!frozen.contains(id)) {
                    node->core.tick(now);
                }
            }
            pass_frames();
        } while (now < end);
    }
};

TEST_CASE("a node under a lease that falls silent is suspected within 2 s, and heard again", "[wire][liveness]") {
    Stage stage;
    auto& node = stage.join(1, "site-a");
    stage.server.core.set_pace(1, Pace::leased);
    node.core.set_pace(1, Pace::leased);
    stage.run(seconds(10));
    CHECK(stage.server.take<PeerSilent>().empty());
    stage.frozen.insert(1);
    stage.run(milliseconds(1300));
    CHECK(stage.server.take<PeerSilent>().empty());
    stage.run(milliseconds(700));
    REQUIRE(stage.server.take<PeerSilent>().size() == 1);
    stage.run(seconds(3));
    CHECK(stage.server.take<PeerSilent>().empty());  // once per silence
    stage.frozen.clear();
    stage.run(milliseconds(600));
    CHECK(stage.server.take<PeerHeard>().size() == 1);
}

TEST_CASE("a node that falls silent in the first moments of its lease is suspected as soon", "[wire][liveness]") {
    for (int wait = 0; wait < 10; ++wait) {  // wherever between two idle beats the lease begins
        Stage stage;
        auto& node = stage.join(1, "site-a");
        stage.run(seconds(20) + milliseconds(200 * wait));
        stage.server.core.set_pace(1, Pace::leased);
        node.core.set_pace(1, Pace::leased);
        stage.run(milliseconds(100));
        stage.frozen.insert(1);
        stage.run(milliseconds(1700));
        CHECK(stage.server.take<PeerSilent>().empty());
        stage.run(milliseconds(700));
        CHECK(stage.server.take<PeerSilent>().size() == 1);
    }
}

TEST_CASE("idle nodes are not suspected between their beats, and a dead one is closed", "[wire][liveness]") {
    Stage stage;
    stage.join(1, "site-a");
    stage.run(seconds(60));
    CHECK(stage.server.take<PeerSilent>().empty());
    CHECK(stage.server.take<PeerClosed>().empty());
    stage.frozen.insert(1);
    stage.run(seconds(20));
    CHECK(stage.server.take<PeerSilent>().size() == 1);
    const auto closed = stage.server.take<PeerClosed>();
    REQUIRE(closed.size() == 1);
    CHECK(closed[0].why.code == "silent");
    CHECK(stage.server.network.expelled.contains(1));
}

TEST_CASE("time in which we ourselves stood still is not held against the peers", "[wire][liveness]") {
    Stage stage;
    auto& node = stage.join(1, "site-a");
    stage.server.core.set_pace(1, Pace::leased);
    node.core.set_pace(1, Pace::leased);
    stage.run(seconds(10));
    stage.now += seconds(40);  // stopped and continued
    stage.server.core.forgive(seconds(40));
    stage.server.core.tick(stage.now);
    CHECK(stage.server.take<PeerSilent>().empty());
    stage.run(seconds(2));
    CHECK(stage.server.take<PeerSilent>().empty());
}

TEST_CASE("the bound follows the gaps of a worse link", "[wire][liveness]") {
    Liveness liveness(Instant{});
    liveness.set_pace(Pace::leased, Instant{});
    Instant now{};
    for (int i = 0; i < 20; ++i) {
        now += milliseconds(500);
        liveness.heard(now);
    }
    CHECK(liveness.bound() == milliseconds(1900));
    for (int i = 0; i < 20; ++i) {
        now += i % 3 == 0 ? milliseconds(2500) : milliseconds(100);
        CHECK_FALSE((i > 0 && liveness.suspect(now)));
        liveness.heard(now);
    }
    CHECK(liveness.bound() > seconds(4));
    CHECK(liveness.bound() <= seconds(30));
    for (int i = 0; i < 20; ++i) {
        liveness.heard(now += milliseconds(500));
    }
    CHECK(liveness.bound() == milliseconds(1900));
}

TEST_CASE("a live first session keeps its identity, a dead one loses it within a second", "[wire][takeover]") {
    Stage stage;
    stage.join(1, "site-a");
    REQUIRE(stage.server.take<PeerOpened>().size() == 1);

    auto& second = stage.join(2, "site-a");
    stage.run(milliseconds(200));
    CHECK(stage.server.take<PeerOpened>().empty());
    const auto refused = second.take<PeerClosed>();
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].why.code == "identity_in_use");

    stage.frozen.insert(1);
    stage.join(3, "site-a");
    stage.run(milliseconds(800));
    CHECK(stage.server.take<PeerOpened>().empty());  // the first may still answer
    stage.run(milliseconds(300));
    const auto opened = stage.server.take<PeerOpened>();
    REQUIRE(opened.size() == 1);
    CHECK(opened[0].connection == 3);
    stage.run(seconds(3));
    const auto closed = stage.server.take<PeerClosed>();
    REQUIRE(closed.size() == 1);
    CHECK(closed[0].connection == 1);
    CHECK(closed[0].why.code == "replaced");
    bool hello = false;
    for (const auto& message : stage.server.take<PeerMessage>()) {
        hello = hello || (message.connection == 3 && std::holds_alternative<Hello>(message.message));
    }
    CHECK(hello);
}

TEST_CASE("when the first connection is lost meanwhile, the newcomer is in at once", "[wire][takeover]") {
    Stage stage;
    stage.join(1, "site-a");
    stage.server.take<PeerOpened>();
    stage.frozen.insert(1);
    stage.join(2, "site-a");
    stage.server.core.lose(1, {ErrorKind::disconnected, "connection_lost", ""});
    CHECK(stage.server.take<PeerOpened>().size() == 1);
}

TEST_CASE("a stranger that does not get to its first message goes after 10 s", "[wire][admission]") {
    Stage stage;
    stage.dial(1, "site-a");
    stage.run(seconds(9));
    CHECK_FALSE(stage.server.network.expelled.contains(1));
    stage.run(seconds(4));
    CHECK(stage.server.network.expelled.contains(1));
    CHECK(stage.server.take<PeerOpened>().empty());
    CHECK(stage.server.take<PeerClosed>().empty());
}

TEST_CASE("an enrolment ends after 10 s, though its request has come", "[wire][admission]") {
    Stage stage;
    stage.dial_to_enrol(1, "192.0.2.1");
    stage.run(milliseconds(10));
    REQUIRE(stage.server.take<PeerOpened>().size() == 1);
    stage.clients[1]->core.send(1, JoinRequest{"site-a", Bytes(32), Bytes(91), Bytes(70)});
    stage.run(seconds(9));
    CHECK(stage.server.take<PeerClosed>().empty());
    stage.run(seconds(2));
    const auto closed = stage.server.take<PeerClosed>();
    REQUIRE(closed.size() == 1);
    CHECK(closed[0].why.code == "join_timeout");
}

TEST_CASE("enrolments are capped per address, and another address is served meanwhile", "[wire][admission]") {
    Stage stage;
    const auto most = LinkLimits{}.joins_per_host;
    for (ConnectionId id = 1; id <= most + 1; ++id) {
        stage.dial_to_enrol(id, "192.0.2.1");
    }
    stage.dial_to_enrol(most + 2, "[2001:db8::1]");
    stage.run(milliseconds(20));
    const auto opened = stage.server.take<PeerOpened>();
    CHECK(opened.size() == most + 1);
    CHECK(opened.back().connection == most + 2);
    std::string told;
    for (const auto& closed : stage.clients[most + 1]->take<PeerClosed>()) {
        told = closed.why.code;
    }
    CHECK(told == "too_many_joins");
}

TEST_CASE("strangers that say nothing keep nobody out: the oldest of the busiest host makes room",
          "[wire][admission]") {
    Stage stage;
    REQUIRE(stage.server.core.accept(1, "198.51.100.7:1", stage.now));  // another host, before all others
    const ConnectionId last = quiet_alone + 500;
    for (ConnectionId id = 2; id <= last; ++id) {
        stage.now += milliseconds(1);
        REQUIRE(stage.server.core.accept(id, "192.0.2.1:" + std::to_string(id), stage.now));
    }
    CHECK_FALSE(stage.server.network.expelled.contains(1));
    CHECK(stage.server.network.expelled.contains(2));
    CHECK_FALSE(stage.server.network.expelled.contains(last));
    CHECK(stage.server.network.expelled.size() == 500);
    stage.join(last + 1, "site-a");
    CHECK(stage.server.take<PeerOpened>().size() == 1);
}

TEST_CASE("there is room for as many more strangers as the federation's members may need to come back",
          "[wire][admission]") {
    Stage stage;
    for (ConnectionId id = 1; id <= 3; ++id) {
        stage.join(id, "site-" + std::to_string(id));
    }
    for (ConnectionId id = 1; id <= 3; ++id) {  // all are lost, and all of them come back
        stage.server.core.lose(id, {ErrorKind::disconnected, "connection_lost", "gone"});
    }
    stage.server.network.expelled.clear();
    const ConnectionId room = quiet_alone + 3 * quiet_per_session;
    for (ConnectionId id = 11; id <= 10 + room; ++id) {
        stage.now += milliseconds(1);
        REQUIRE(stage.server.core.accept(id, "192.0.2.1:" + std::to_string(id), stage.now));
    }
    CHECK(stage.server.network.expelled.empty());
    REQUIRE(stage.server.core.accept(11 + room, "192.0.2.2:1", stage.now));
    CHECK(stage.server.network.expelled.contains(11));
    CHECK(stage.server.network.expelled.size() == 1);
}

TEST_CASE("the first message must be hello or attach", "[wire][admission]") {
    Stage stage;
    auto& node = stage.dial(1, "site-a");
    stage.run(milliseconds(0));
    node.core.send(1, Progress{});
    stage.run(milliseconds(300));
    const auto closed = node.take<PeerClosed>();
    REQUIRE(closed.size() == 1);
    CHECK(closed[0].why.code == "hello_expected");
    CHECK(stage.server.take<PeerOpened>().empty());
}

TEST_CASE("a peer that does not read is dropped when its queue is full, and holds two sealed frames at most",
          "[wire][limits]") {
    Stage stage;
    stage.join(1, "site-a");
    stage.server.network.full.insert(1);
    for (int i = 0; i < 2047; ++i) {
        stage.server.core.send(1, Welcome{.session = 1});
    }
    stage.run(milliseconds(50));
    CHECK(stage.server.take<PeerClosed>().empty());
    for (int i = 0; i < 5000; ++i) {
        stage.server.core.send(1, Welcome{.session = 1});
    }
    stage.run(seconds(3));
    const auto closed = stage.server.take<PeerClosed>();
    REQUIRE(closed.size() == 1);
    CHECK(closed[0].why.code == "slow_peer");
}

TEST_CASE("chunks that went are told in pairs, and no other messages are", "[wire][limits]") {
    Stage stage;
    stage.join(1, "site-a");
    stage.dial(2, "site-a", ConnectionKind::bulk, 1);
    stage.run(milliseconds(10));
    auto told = [&] {
        stage.run(milliseconds(10));
        std::uint32_t chunks = 0;
        for (const auto& sent : stage.server.take<PeerSent>()) {
            CHECK(sent.connection == 2);
            chunks += sent.chunks;
        }
        return chunks;
    };
    stage.server.core.send(2, Pull{.transfer = 1, .credits = 8});
    stage.server.core.send(2, TransferEnd{.transfer = 1});
    CHECK(told() == 0);
    const Chunk chunk{1, 0, 100, Bytes(100)};
    stage.server.core.send(2, chunk);
    CHECK(told() == 0);
    stage.server.core.send(2, chunk);
    CHECK(told() == 2);
    for (int i = 0; i < 5; ++i) {
        stage.server.core.send(2, chunk);
    }
    CHECK(told() >= 4);
}

TEST_CASE("the link says when it has to be looked at next", "[wire][limits]") {
    Stage stage;
    CHECK(stage.server.core.due() <= stage.now);  // its first look
    stage.server.core.tick(stage.now);
    CHECK(stage.server.core.due() == never);
    stage.join(1, "site-a");
    CHECK(stage.server.core.due() <= stage.now + seconds(2));  // a heartbeat
    stage.server.core.tick(stage.now += seconds(2));
    CHECK(stage.server.core.due() <= stage.now + seconds(2));  // the next one
    CHECK(stage.server.core.due() >= stage.now + milliseconds(10));
    stage.server.core.tick(stage.now += seconds(2));
    CHECK(stage.server.core.due() <= stage.now + seconds(2));
    stage.server.core.set_pace(1, Pace::leased);
    CHECK(stage.server.core.due() <= stage.now + milliseconds(500));  // sooner, for it is at work now
    for (int i = 0; i < 20; ++i) {  // nothing comes of it: its silence is found when it is one, heartbeats or not
        stage.server.core.tick(stage.now = std::max(stage.server.core.due(), stage.now + milliseconds(1)));
    }
    CHECK(stage.server.take<PeerSilent>().size() == 1);
    stage.server.core.close(1, {ErrorKind::io, "closed", "nothing to say"});
    CHECK(stage.server.core.due() <= stage.now + seconds(2));
}

TEST_CASE("heartbeats go before what waits", "[wire][limits]") {
    Stage stage;
    auto& node = stage.join(1, "site-a");
    stage.server.network.full.insert(1);
    for (std::uint64_t i = 0; i < 100; ++i) {
        stage.server.core.send(1, Reply{i, true, std::string(100'000, ' '), {}});
    }
    stage.run(seconds(5));
    stage.server.network.full.clear();
    node.take<PeerMessage>();
    stage.server.core.flush(stage.now);
    stage.pass_frames();
    CHECK(node.take<PeerMessage>().size() == 100);
    CHECK(node.take<PeerSilent>().empty());
}

TEST_CASE("a revoked identity is refused with the reason before anything it says is looked at", "[wire][revocation]") {
    Stage stage;
    stage.revoked.insert("site-a");
    auto& node = stage.dial(1, "site-a");
    node.core.send(1, Hello{});
    stage.run(milliseconds(500));
    CHECK(stage.server.take<PeerOpened>().empty());
    CHECK(stage.server.take<PeerMessage>().empty());
    CHECK(stage.server.network.expelled.contains(1));
    const auto closed = node.take<PeerClosed>();
    REQUIRE(closed.size() == 1);
    CHECK(closed[0].why.code == "revoked");
    stage.join(2, "site-b");
    CHECK(stage.server.take<PeerOpened>().size() == 1);
}

TEST_CASE("a session that is refused takes its transfers along at once, not after the farewell", "[wire][revocation]") {
    Stage stage;
    stage.join(1, "site-a");
    stage.dial(2, "site-a", ConnectionKind::bulk, 1);
    stage.run(milliseconds(50));
    REQUIRE(stage.server.take<PeerOpened>().size() == 2);
    stage.frozen.insert(1);  // it does not even read the farewell
    stage.server.core.close(1, {ErrorKind::refused, "revoked", "revoked"});
    stage.server.core.send(2, Credit{1, 1});
    stage.run(milliseconds(200));
    CHECK(stage.server.network.expelled.contains(2));
    for (const auto& message : stage.clients[2]->take<PeerMessage>()) {
        CHECK_FALSE(std::holds_alternative<Credit>(message.message));
    }
}

}  // namespace
}  // namespace causeway
