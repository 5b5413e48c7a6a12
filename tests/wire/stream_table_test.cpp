// Routes and messages of streams without a link: what is dialled, what is delivered, what counts as lost.
#include <catch2/catch.hpp>

#include "tests/wire/stream_message.h"
#include "wire/stream_table.h"

namespace causeway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A table with a link that only writes down what is asked of it.
struct Desk {
    struct Dialled {
        ConnectionId id = 0;
        ConnectOptions options;
    };
    std::vector<Dialled> dialled;
    std::vector<std::pair<ConnectionId, StreamData>> sent;
    std::vector<std::pair<ConnectionId, Error>> closed;
    std::vector<StreamPeer> allowed;
    std::vector<std::pair<std::string, StreamData>> delivered;
    std::vector<std::pair<std::string, Error>> lost;
    ConnectionId next = 100;
    Instant now = seconds(5);
    StreamTable table;

    explicit Desk(StreamLimits limits = {})
        : table({[this](ConnectOptions options) {
                     dialled.push_back({++next, std::move(options)});
                     return next;
                 },
                 [this](ConnectionId to, Message m) { sent.emplace_back(to, std::get<StreamData>(std::move(m))); },
                 [this](ConnectionId which, Error why) { closed.emplace_back(which, std::move(why)); },
                 [this](std::vector<StreamPeer> peers) { allowed = std::move(peers); },
                 {[this](const std::string& node, StreamData m) { delivered.emplace_back(node, std::move(m)); },
                  [this](const std::string& node, const Error& why) { lost.emplace_back(node, why); }}},
                limits) {}

    void roster(std::vector<std::string> addresses, std::uint32_t expires_ms = 60'000) {
        table.roster({{{"host-1", "host", {}, experiment, std::move(addresses), expires_ms}}}, now);
    }
    void open(ConnectionId id, const std::string& node = "host-1", ConnectionId carrier = 0) {
        table.handle(PeerOpened{id, ConnectionKind::stream, PeerIdentity{{"clinic", Role::host, node}, {}},
                                "10.0.0.3:7401", 0, experiment, carrier},
                     now);
    }
    void lose(ConnectionId id, Error why) {
        table.handle(PeerClosed{id, ConnectionKind::stream, std::move(why), {}}, now);
    }
    void pass(Duration length) {
        const auto end = now + length;
        for (; now < end; now += milliseconds(50)) {
            table.tick(now);
        }
    }
    void arrive(ConnectionId id, StreamData piece) { table.handle(PeerMessage{id, std::move(piece)}, now); }
};

const Error gone{ErrorKind::disconnected, "connection_lost", "gone"};
const Error nothing_there{ErrorKind::disconnected, "unreachable", "nothing answers there"};

TEST_CASE("a roster opens a connection to exactly the rostered peer, and messages wait for it", "[wire][streams]") {
    Desk desk;
    desk.roster({"10.0.0.3:7401"});
    REQUIRE(desk.allowed.size() == 1);
    CHECK(desk.allowed.front().expires == desk.now + seconds(60));
    REQUIRE(desk.dialled.size() == 1);
    desk.table.send("host-1", message(10, 1), desk.now);
    desk.table.send("host-1", message(20, 2), desk.now);
    REQUIRE(desk.dialled.size() == 1);
    CHECK(desk.dialled.front().options.to == Address{"10.0.0.3", 7401});
    CHECK(desk.dialled.front().options.kind == ConnectionKind::stream);
    CHECK(desk.dialled.front().options.peer->node == "host-1");
    CHECK(desk.sent.empty());
    desk.open(desk.dialled.front().id);
    REQUIRE(desk.sent.size() == 2);
    CHECK(desk.sent[0].second.batch == 1);
    CHECK(desk.sent[1].second.batch == 2);
    CHECK(desk.table.routes() == std::vector<std::string>{"host-1 direct 10.0.0.3:7401"});
}

TEST_CASE("a stream that is open before its first message carries it at once", "[wire][streams]") {
    Desk desk;
    desk.roster({"10.0.0.3:7401"});
    desk.open(desk.dialled.at(0).id);
    CHECK(desk.table.routes() == std::vector<std::string>{"host-1 direct 10.0.0.3:7401"});
    desk.table.send("host-1", message(10), desk.now);
    CHECK(desk.sent.size() == 1);
    desk.pass(seconds(300));
    desk.roster({"10.0.0.3:7401"});
    CHECK(desk.dialled.size() == 1);
    CHECK(desk.closed.empty());  // it lives as long as its line
}

TEST_CASE("an attempt that nothing waits for is nobody's loss: it is made again after a while, and at once when needed",
          "[wire][streams]") {
    Desk desk;
    desk.roster({"10.0.0.3:7401"});
    desk.lose(desk.dialled.at(0).id, nothing_there);
    desk.pass(seconds(4));
    CHECK(desk.dialled.size() == 1);
    CHECK(desk.lost.empty());
    SECTION("after a while") {
        desk.pass(seconds(2));
        CHECK(desk.dialled.size() == 2);
    }
    SECTION("when there is something to send") {
        desk.table.send("host-1", message(10), desk.now);
        REQUIRE(desk.dialled.size() == 2);
        desk.lose(desk.dialled.back().id, nothing_there);
        CHECK(desk.lost.size() == 1);
    }
    SECTION("not for a line that is over") {
        desk.roster({"10.0.0.3:7401"}, 1000);
        desk.pass(seconds(60));
        CHECK(desk.dialled.size() == 1);
    }
}

TEST_CASE("a side that listens and has no address of its peer waits to be connected to", "[wire][streams]") {
    Desk desk;
    desk.table.attach(9, {"coordinator", 7400}, 77);  // whose relay it does not need yet
    desk.roster({});
    desk.pass(seconds(50));
    CHECK(desk.dialled.empty());
    CHECK(desk.lost.empty());
}

TEST_CASE("a message sent during an attempt made ahead has the whole time that a peer's roster may take",
          "[wire][streams]") {
    Desk desk;
    desk.roster({"10.0.0.3:7401"});
    const Error early{ErrorKind::refused, "not_on_roster", "not yet"};
    const auto refuse_for = [&](Duration length) {
        for (const auto end = desk.now + length; desk.now < end && desk.lost.empty();) {
            desk.lose(desk.dialled.back().id, early);
            desk.pass(milliseconds(100));
        }
    };
    refuse_for(milliseconds(2800));
    desk.table.send("host-1", message(10), desk.now);
    refuse_for(milliseconds(2500));
    CHECK(desk.lost.empty());
    refuse_for(seconds(2));
    CHECK(desk.lost.size() == 1);
}

TEST_CASE("each address is tried, and when none answers the owner hears once what each said", "[wire][streams]") {
    Desk desk;
    desk.roster({"10.0.0.3:7401", "[fd00::3]:7401"});
    desk.table.send("host-1", message(10), desk.now);
    REQUIRE(desk.dialled.size() == 1);
    desk.lose(desk.dialled.at(0).id, nothing_there);
    REQUIRE(desk.dialled.size() == 2);
    CHECK(desk.dialled.at(1).options.to == Address{"fd00::3", 7401});
    desk.lose(desk.dialled.at(1).id, {ErrorKind::refused, "wrong_peer", "another one"});
    REQUIRE(desk.lost.size() == 1);
    CHECK(desk.lost.front().second.code == "no_route");
    CHECK(desk.lost.front().second.message.find("10.0.0.3:7401: unreachable") != std::string::npos);
    CHECK(desk.lost.front().second.message.find("[fd00::3]:7401: wrong_peer") != std::string::npos);
    desk.table.send("host-1", message(10), desk.now);  // the next message tries anew
    CHECK(desk.dialled.size() == 3);
}

TEST_CASE("a peer whose roster is still on its way is asked again for a while", "[wire][streams]") {
    Desk desk;
    desk.roster({"10.0.0.3:7401"});
    desk.table.send("host-1", message(10), desk.now);
    const Error early{ErrorKind::refused, "not_on_roster", "not yet"};
    SECTION("until it is there") {
        desk.lose(desk.dialled.back().id, early);
        desk.pass(milliseconds(200));
        REQUIRE(desk.dialled.size() == 2);
        desk.open(desk.dialled.back().id);
        CHECK(desk.sent.size() == 1);
        CHECK(desk.lost.empty());
    }
    SECTION("and not for ever") {
        for (int i = 0; i < 100 && desk.lost.empty(); ++i) {
            desk.lose(desk.dialled.back().id, early);
            desk.pass(milliseconds(100));
        }
        REQUIRE(desk.lost.size() == 1);
        CHECK(desk.dialled.size() < 40);
    }
}

TEST_CASE("without an address of the peer we wait for it to connect, for a while", "[wire][streams]") {
    Desk desk;
    desk.roster({});
    desk.table.send("host-1", message(10), desk.now);
    CHECK(desk.dialled.empty());
    SECTION("it comes") {
        desk.pass(seconds(1));
        desk.open(1);
        REQUIRE(desk.sent.size() == 1);
        CHECK(desk.sent.front().first == 1);
        desk.pass(seconds(5));
        CHECK(desk.lost.empty());
    }
    SECTION("it does not") {
        desk.pass(seconds(3));
        REQUIRE(desk.lost.size() == 1);
        CHECK(desk.lost.front().second.code == "no_route");
    }
}

TEST_CASE("a node that is not on the roster, or not any more, cannot be sent to", "[wire][streams]") {
    Desk desk;
    desk.table.send("host-1", message(10), desk.now);
    REQUIRE(desk.lost.size() == 1);
    CHECK(desk.lost.front().second.code == "not_on_roster");
    desk.roster({"10.0.0.3:7401"}, 1000);
    desk.now += seconds(2);
    desk.table.send("host-1", message(10), desk.now);
    REQUIRE(desk.lost.size() == 2);
    CHECK(desk.lost.back().second.code == "roster_expired");
    desk.roster({"10.0.0.3:7401"});
    desk.table.send("host-1", message(10), desk.now);
    desk.table.roster({}, desk.now);  // while it is being dialled
    REQUIRE(desk.lost.size() == 3);
    CHECK(desk.lost.back().second.code == "not_on_roster");
    CHECK(desk.allowed.empty());
}

TEST_CASE("a connection that breaks is told once, and the next message opens another", "[wire][streams]") {
    Desk desk;
    desk.roster({"10.0.0.3:7401"});
    desk.table.send("host-1", message(10), desk.now);
    const auto id = desk.dialled.back().id;
    desk.open(id);
    desk.lose(id, gone);
    REQUIRE(desk.lost.size() == 1);
    CHECK(desk.lost.front() == std::pair<std::string, Error>("host-1", gone));
    CHECK(desk.table.routes().empty());
    desk.pass(seconds(3));
    CHECK(desk.lost.size() == 1);
    CHECK(desk.dialled.size() == 1);
    desk.table.send("host-1", message(10), desk.now);
    CHECK(desk.dialled.size() == 2);
}

TEST_CASE("a peer that closes a stream because it was idle is no loss, unless something was on its way",
          "[wire][streams]") {
    Desk desk;
    desk.roster({});
    const Error idle = bye("nothing moves");  // what nodes of before say
    desk.open(1, "host-1");
    desk.pass(seconds(31));
    SECTION("nothing was on the way") {
        desk.lose(1, idle);
        CHECK(desk.lost.empty());
    }
    SECTION("a message was, and is lost") {
        desk.table.send("host-1", message(10), desk.now);
        desk.lose(1, idle);
        CHECK(desk.lost.size() == 1);
    }
    SECTION("half a message had come") {
        auto whole = message(2 * max_chunk_bytes);
        desk.arrive(1, cut_piece(whole));
        desk.lose(1, idle);
        CHECK(desk.lost.size() == 1);
    }
}

TEST_CASE("the link holds a few pieces at a time, in order, and what waits is bounded", "[wire][streams]") {
    StreamLimits limits;
    limits.in_link = 2 * max_chunk_bytes;
    limits.waiting = 12 * max_chunk_bytes;
    Desk desk(limits);
    desk.roster({});
    desk.open(1);
    for (int i = 0; i < 4; ++i) {  // until pieces are as long as they may be
        desk.table.handle(PeerMeasured{1, milliseconds(10)}, desk.now);
    }
    desk.table.send("host-1", message(5 * max_chunk_bytes, 1), desk.now);
    desk.table.send("host-1", message(10, 2), desk.now);
    CHECK(desk.sent.size() == 2);
    for (std::size_t expected = 3; expected <= 6; ++expected) {
        desk.table.handle(PeerSent{1, 1}, desk.now);
        CHECK(desk.sent.size() == expected);
    }
    CHECK(desk.sent.back().second.batch == 2);
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK(desk.sent[i].second.offset == i * max_chunk_bytes);
    }
    CHECK(desk.lost.empty());
    desk.table.send("host-1", message(8 * max_chunk_bytes), desk.now);
    desk.table.send("host-1", message(8 * max_chunk_bytes), desk.now);
    REQUIRE(desk.lost.size() == 1);
    CHECK(desk.lost.front().second.code == "stream_overflow");
    CHECK(desk.closed.back().first == 1);
}

TEST_CASE("what a peer sends is delivered whole; what it may not send closes its connection", "[wire][streams]") {
    StreamLimits limits;
    limits.largest = 4 * max_chunk_bytes;
    Desk desk(limits);
    desk.roster({});
    desk.open(1);
    auto whole = message(3 * max_chunk_bytes);
    desk.arrive(1, cut_piece(whole));
    desk.arrive(1, cut_piece(whole));
    CHECK(desk.delivered.empty());
    desk.arrive(1, cut_piece(whole));
    REQUIRE(desk.delivered.size() == 1);
    CHECK(desk.delivered.front().first == "host-1");
    CHECK(desk.delivered.front().second == message(3 * max_chunk_bytes));
    auto piece = message(100);
    std::string expected;
    SECTION("too long") {
        piece.total = limits.largest + 1;
        expected = "stream_too_long";
    }
    SECTION("out of order") {
        piece.offset = 5;
        expected = "out_of_order";
    }
    SECTION("of another experiment") {
        piece.lease.experiment = experiment + 1;
        expected = "wrong_experiment";
    }
    desk.arrive(1, piece);
    REQUIRE(desk.closed.size() == 1);
    CHECK(desk.closed.front().second.code == expected);
    desk.lose(1, desk.closed.front().second);
    REQUIRE(desk.lost.size() == 1);
    CHECK(desk.lost.front().second.code == expected);
    CHECK(desk.delivered.size() == 1);
}

TEST_CASE("an owner cuts off a peer that sends more than it should", "[wire][streams]") {
    Desk desk;
    desk.roster({});
    desk.open(1);
    desk.table.cut_off("host-2", {ErrorKind::overloaded, "flood", "too much"});
    CHECK(desk.closed.empty());
    desk.table.cut_off("host-1", {ErrorKind::overloaded, "flood", "too much"});
    REQUIRE(desk.closed.size() == 1);
    CHECK(desk.closed.front().first == 1);
}

TEST_CASE("a peer that connects anew takes the place of its earlier connection", "[wire][streams]") {
    Desk desk;
    desk.roster({});
    desk.open(1);
    desk.open(2);
    REQUIRE(desk.closed.size() == 1);
    CHECK(desk.closed.front().first == 1);
    CHECK(desk.closed.front().second.code == "replaced");
    CHECK(desk.lost.size() == 1);
    desk.table.send("host-1", message(10), desk.now);
    CHECK(desk.sent.back().first == 2);
    CHECK(desk.dialled.empty());
}

TEST_CASE("when both sides dial at once each keeps to the connection it has first", "[wire][streams]") {
    Desk desk;
    desk.roster({"10.0.0.3:7401"});
    desk.table.send("host-1", message(10, 1), desk.now);
    desk.open(1);  // theirs
    desk.open(desk.dialled.back().id);
    desk.table.send("host-1", message(10, 2), desk.now);
    REQUIRE(desk.sent.size() == 2);
    CHECK(desk.sent[0].first == 1);
    CHECK(desk.sent[1].first == 1);
    desk.arrive(desk.dialled.back().id, message(5));
    CHECK(desk.delivered.size() == 1);
    CHECK(desk.lost.empty());
}

TEST_CASE("the relay is used when no address answers: a connection to the coordinator first, then one inside it",
          "[wire][relay]") {
    Desk desk;
    desk.table.attach(9, {"coordinator", 7400}, 77);
    desk.roster({"10.0.0.3:7401"});
    desk.table.send("host-1", message(10, 1), desk.now);
    desk.lose(desk.dialled.back().id, nothing_there);
    REQUIRE(desk.dialled.size() == 2);
    const auto carrier = desk.dialled.back();
    CHECK(carrier.options.kind == ConnectionKind::relay);
    CHECK(carrier.options.to == Address{"coordinator", 7400});
    CHECK(carrier.options.control == 9);
    SECTION("it opens") {
        desk.table.handle(PeerOpened{carrier.id, ConnectionKind::relay, {}, "", 9}, desk.now);
        REQUIRE(desk.dialled.size() == 3);
        const auto inner = desk.dialled.back();
        CHECK(inner.options.via == carrier.id);
        CHECK(inner.options.peer->node == "host-1");
        SECTION("and the peer answers; the next loss goes the same way at once") {
            desk.open(inner.id, "host-1", carrier.id);
            CHECK(desk.sent.size() == 1);
            CHECK(desk.table.routes() == std::vector<std::string>{"host-1 relayed"});
            desk.lose(inner.id, gone);
            CHECK(desk.lost.size() == 1);
            desk.table.send("host-1", message(10, 2), desk.now);
            CHECK(desk.dialled.back().options.via == carrier.id);
            desk.pass(seconds(61));
            desk.lose(desk.dialled.back().id, gone);
            desk.roster({"10.0.0.3:7401"});
            desk.table.send("host-1", message(10, 2), desk.now);
            CHECK(desk.dialled.back().options.via == 0);  // a minute later the addresses are tried again
        }
        SECTION("and the peer does not") {
            desk.lose(inner.id, {ErrorKind::disconnected, "peer_gone", "not connected"});
            REQUIRE(desk.lost.size() == 1);
            CHECK(desk.lost.front().second.code == "no_route");
            CHECK(desk.lost.front().second.message.find("10.0.0.3:7401: unreachable") != std::string::npos);
            CHECK(desk.lost.front().second.message.find("by relay: peer_gone") != std::string::npos);
        }
        SECTION("and it is idle after a while") {
            desk.table.roster({}, desk.now);
            desk.lose(inner.id, gone);
            desk.pass(seconds(32));
            REQUIRE_FALSE(desk.closed.empty());
            CHECK(desk.closed.back().first == carrier.id);
            CHECK(desk.closed.back().second.code == "bye");
        }
    }
    SECTION("the coordinator refuses it") {
        desk.lose(carrier.id, {ErrorKind::refused, "unknown_session", "none"});
        REQUIRE(desk.lost.size() == 1);
        CHECK(desk.lost.front().second.message.find("relay: unknown_session") != std::string::npos);
    }
    SECTION("the session ends") {
        desk.table.detach(9);
        CHECK(desk.closed.back().first == carrier.id);
        CHECK(desk.lost.size() == 1);
    }
}

TEST_CASE("a session that begins before the last one's relay connection is closed has one of its own",
          "[wire][relay]") {
    Desk desk;
    desk.table.attach(9, {"coordinator", 7400}, 77);
    desk.roster({"10.0.0.3:7401"});
    desk.table.send("host-1", message(10, 1), desk.now);
    desk.lose(desk.dialled.back().id, nothing_there);
    const auto old = desk.dialled.back().id;
    const bool was_open = GENERATE(true, false);
    ConnectionId inner = 0;
    if (was_open) {
        desk.table.handle(PeerOpened{old, ConnectionKind::relay, {}, "", 9}, desk.now);
        inner = desk.dialled.back().id;
        desk.open(inner, "host-1", old);
    }
    desk.table.detach(9);
    CHECK(desk.lost.size() == 1);
    CHECK(desk.table.routes().empty());
    desk.table.attach(10, {"coordinator", 7400}, 78);
    desk.table.send("host-1", message(10, 2), desk.now);
    const auto carrier = desk.dialled.back();
    CHECK(carrier.options.kind == ConnectionKind::relay);
    CHECK(carrier.options.control == 10);
    desk.table.handle(PeerOpened{old, ConnectionKind::relay, {}, "", 9}, desk.now);  // both come late
    desk.lose(inner, gone);
    desk.lose(old, gone);
    CHECK(desk.lost.size() == 1);
    REQUIRE(desk.dialled.back().id == carrier.id);
    desk.table.handle(PeerOpened{carrier.id, ConnectionKind::relay, {}, "", 10}, desk.now);
    REQUIRE(desk.dialled.back().options.via == carrier.id);
    desk.open(desk.dialled.back().id, "host-1", carrier.id);
    REQUIRE_FALSE(desk.sent.empty());
    CHECK(desk.sent.back().second.batch == 2);
}

TEST_CASE("a node that is asked for by relay opens its relay connection", "[wire][relay]") {
    Desk desk;
    desk.table.handle(PeerMessage{9, RelayOpen{1, "site-a", experiment}}, desk.now);
    CHECK(desk.dialled.empty());  // without a session there is none
    desk.table.attach(9, {"coordinator", 7400}, 77);
    desk.table.handle(PeerMessage{9, RelayOpen{1, "site-a", experiment}}, desk.now);
    desk.table.handle(PeerMessage{9, RelayOpen{2, "site-b", experiment}}, desk.now);
    REQUIRE(desk.dialled.size() == 1);
    CHECK(desk.dialled.front().options.kind == ConnectionKind::relay);
}

TEST_CASE("a stream that ends because the roster has let it go is no loss", "[wire][streams]") {
    Desk desk;
    desk.roster({"10.0.0.3:7401"});
    desk.table.send("host-1", message(10), desk.now);
    const auto id = desk.dialled.back().id;
    desk.open(id);
    const Error over{ErrorKind::refused, "roster_expired", "over"};
    SECTION("both rosters") {
        desk.table.roster({}, desk.now);
        desk.lose(id, over);
        CHECK(desk.lost.empty());
    }
    SECTION("ours still has it: the peer is lost") {
        desk.lose(id, over);
        CHECK(desk.lost.size() == 1);
    }
}

}  // namespace
}  // namespace causeway
