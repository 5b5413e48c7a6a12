// Streams between two link cores: who may, who may not, and until when. No sockets; time is the test's.
#include <catch2/catch.hpp>

#include "tests/wire/stream_pair.h"

namespace causeway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("two nodes on each other's roster exchange data, and both know with whom", "[wire][streams]") {
    Pair pair;
    pair.allow();
    pair.dial();
    const auto at_host = pair.host.take<PeerOpened>();
    const auto at_client = pair.client.take<PeerOpened>();
    REQUIRE(at_host.size() == 1);
    REQUIRE(at_client.size() == 1);
    CHECK(at_host.front().kind == ConnectionKind::stream);
    CHECK(at_host.front().peer->identity.node == "site-a");
    CHECK(at_host.front().experiment == experiment);
    CHECK(at_client.front().peer->identity.node == "host-1");
    pair.client.core.send(1, Pair::data(1000));
    pair.host.core.send(1, Pair::data(1 << 20));
    pair.run(milliseconds(0));
    const auto up = pair.host.take<PeerMessage>();
    const auto down = pair.client.take<PeerMessage>();
    REQUIRE(up.size() == 1);
    REQUIRE(down.size() == 1);
    CHECK(std::get<StreamData>(down.front().message) == Pair::data(1 << 20));
    CHECK(pair.client.core.stream_traffic().received > 1 << 20);
    CHECK(pair.client.core.stream_traffic().received == pair.host.core.stream_traffic().sent);
    CHECK(pair.client.core.stream_traffic().received == pair.client.core.traffic().received);
}

TEST_CASE("messages that wait share a frame until it holds 16 KiB, in order, so that none waits for those behind it",
          "[wire][streams]") {
    Pair pair;
    pair.allow();
    pair.dial();
    pair.run(seconds(3));
    pair.client.network.sent.clear();
    for (std::uint32_t i = 0; i < 12; ++i) {
        auto message = Pair::data(i == 6 ? 1 << 20 : i % 2 == 0 ? 128 : 16 << 10);
        message.batch = i;
        pair.client.core.send(1, std::move(message));
    }
    pair.client.core.flush(pair.now);
    CHECK(pair.client.network.sent[1].size() == 7);  // labels with their values, the long one by itself
    for (const auto& frame : pair.client.network.sent[1]) {
        CHECK(frame.size() <= max_sealed_bytes);
    }
    pair.run(milliseconds(0));
    const auto came = pair.host.take<PeerMessage>();
    REQUIRE(came.size() == 12);
    for (std::uint32_t i = 0; i < 12; ++i) {
        CHECK(std::get<StreamData>(came[i].message).batch == i);
    }
}

TEST_CASE("a node that is not on the roster is refused before anything it says is looked at", "[wire][streams]") {
    Pair pair;
    pair.client.core.allow_streams({Pair::line(pair.host_credentials, seconds(60))});
    SECTION("nobody is on it") {
        pair.host.core.allow_streams({});
    }
    SECTION("another certificate of the same name is") {
        const auto other = pair.federation.node(Role::client, "site-a");
        pair.host.core.allow_streams({Pair::line(other, seconds(60))});
    }
    SECTION("another node with that certificate is") {
        auto line = Pair::line(pair.client_credentials, seconds(60));
        line.node = "site-b";
        pair.host.core.allow_streams({line});
    }
    SECTION("it is there in another role") {
        auto line = Pair::line(pair.client_credentials, seconds(60));
        line.role = Role::host;
        pair.host.core.allow_streams({line});
    }
    SECTION("its line has expired") {
        pair.host.core.allow_streams({Pair::line(pair.client_credentials, pair.now)});
    }
    SECTION("it is there for another experiment") {
        pair.host.core.allow_streams({Pair::line(pair.client_credentials, seconds(60), experiment + 1)});
    }
    pair.dial();
    CHECK(pair.host.take<PeerOpened>().empty());
    CHECK(pair.host.take<PeerMessage>().empty());
    pair.run(seconds(1));
    CHECK(why_closed(pair.client) == "not_on_roster");
    CHECK(pair.host.core.empty());
}

TEST_CASE("the connecting side wants exactly the rostered peer, and names both when another answers",
          "[wire][streams]") {
    Pair pair;
    pair.allow();
    auto wanted = Pair::line(pair.host_credentials, seconds(60));
    SECTION("another certificate") {
        wanted.fingerprint = Digest{};
    }
    SECTION("another node") {
        wanted.node = "host-2";
    }
    SECTION("another role") {
        wanted.role = Role::client;
    }
    pair.dial(1, wanted);
    pair.run(seconds(3));
    const auto closed = pair.client.take<PeerClosed>();
    REQUIRE(closed.size() == 1);
    CHECK(closed.front().why.code == "wrong_peer");
    CHECK(closed.front().why.message.find("is host host-1") != std::string::npos);
    CHECK(closed.front().why.message.find("not " + std::string(to_string(wanted.role)) + " " + wanted.node) !=
          std::string::npos);
    CHECK(pair.client.take<PeerOpened>().empty());
    CHECK(pair.host.take<PeerOpened>().empty());
}

TEST_CASE("the connecting side, too, wants the peer on its own roster", "[wire][streams]") {
    Pair pair;
    pair.host.core.allow_streams({Pair::line(pair.client_credentials, seconds(60))});
    pair.dial();
    pair.run(seconds(3));
    CHECK(why_closed(pair.client) == "not_on_roster");
    CHECK(pair.host.take<PeerOpened>().empty());
}

TEST_CASE("a line that expires closes its stream within a second; a renewed one does not", "[wire][streams]") {
    Pair pair;
    pair.allow(seconds(11));
    pair.dial();
    pair.run(seconds(8));
    pair.allow(seconds(20));
    pair.run(seconds(10));
    CHECK(pair.client.take<PeerClosed>().empty());
    pair.host.core.forgive(seconds(5));  // our own stall prolongs nothing
    pair.run(seconds(2));
    CHECK(why_closed(pair.client) == "roster_expired");
    CHECK(why_closed(pair.host) == "roster_expired");
}

TEST_CASE("a roster without the peer closes its stream at once", "[wire][streams]") {
    Pair pair;
    pair.allow();
    pair.dial();
    REQUIRE(pair.host.take<PeerOpened>().size() == 1);
    pair.host.core.allow_streams({Pair::line(pair.client_credentials, seconds(60), experiment + 1)});
    pair.run(milliseconds(500));
    CHECK(why_closed(pair.host) == "roster_expired");
    CHECK(why_closed(pair.client) == "roster_expired");
}

TEST_CASE("a node accepts a few streams of one peer, not any number", "[wire][streams]") {
    Pair pair;
    pair.allow();
    const auto most = LinkLimits{}.streams_per_peer;
    for (ConnectionId id = 1; id <= most + 1; ++id) {
        pair.dial(id);
    }
    pair.run(seconds(1));
    CHECK(pair.host.take<PeerOpened>().size() == most);
    CHECK(why_closed(pair.client) == "too_many_connections");
}

TEST_CASE("what does not belong on a stream is answered, counted, and ends it", "[wire][streams]") {
    Pair pair;
    pair.allow();
    pair.dial();
    for (std::size_t i = 0; i <= LinkLimits{}.bad_messages; ++i) {
        pair.client.core.send(1, i % 2 == 0 ? Message(Credit{1, 1}) : Message(StreamOpen{experiment}));
    }
    pair.run(seconds(1));
    CHECK(why_closed(pair.host) == "wrong_connection");
}

/// A peer that says what it likes, over a real channel.
struct Speaker {
    SecureChannel channel;
    std::vector<SharedBytes> heard;

    explicit Speaker(const ChannelContext& context) : channel(context, test_now_s) {}
    void talk(Node& with, ConnectionId id, const std::optional<Message>& first, Instant now) {
        Bytes out;
        (void)channel.start(out);
        bool said = !first;
        for (int turn = 0; turn < 6; ++turn) {
            if (channel.is_open() && !said) {
                REQUIRE(channel.send(encode(*first), out).has_value());
                said = true;
            }
            if (!out.empty()) {
                with.core.receive(id, std::exchange(out, {}), now, test_now_s);
            }
            with.core.tick(now);
            with.core.flush(now);
            for (auto& frame : std::exchange(with.network.sent[id], {})) {
                (void)channel.receive(frame, out, heard);
            }
        }
    }
    /// The code of the first notice that was heard.
    [[nodiscard]] std::string code() const {
        for (const auto& bytes : heard) {
            const auto said = decode(bytes);
            if (const auto* notice = said ? std::get_if<ErrorNotice>(&*said) : nullptr) {
                return notice->code;
            }
        }
        return "";
    }
};

TEST_CASE("a node takes no session, and a coordinator no stream of somebody without one", "[wire][streams]") {
    Pair pair;
    pair.allow();
    SECTION("a hello, or an attach, to a node") {
        for (const Message& first : {Message(Hello{}), Message(Attach{1})}) {
            Speaker speaker(*ChannelContext::connecting_to_nodes(pair.client_credentials));
            REQUIRE(pair.host.core.accept(1, "192.0.2.1:5000", pair.now));
            speaker.talk(pair.host, 1, first, pair.now);
            CHECK(speaker.code() == "not_a_coordinator");
            pair.host.core.lose(1, bye("next"));
        }
        CHECK(pair.host.take<PeerOpened>().empty());
    }
    SECTION("a stream's opening to a coordinator") {
        Node coordinator(*ChannelContext::accepting(pair.federation.node(Role::coordinator, "coordinator")),
                         std::nullopt);
        Speaker speaker(*ChannelContext::connecting(pair.client_credentials));
        REQUIRE(coordinator.core.accept(1, "192.0.2.1:5000", pair.now));
        speaker.talk(coordinator, 1, StreamOpen{experiment}, pair.now);
        CHECK(speaker.code() == "unknown_session");
        CHECK(coordinator.take<PeerOpened>().empty());
    }
}

TEST_CASE("a peer that answers a stream's opening with another message is given up", "[wire][streams]") {
    Pair pair;
    pair.allow();
    pair.client.core.dial(1,
                          {.to = {"192.0.2.2", 7401},
                           .kind = ConnectionKind::stream,
                           .peer = Pair::line(pair.host_credentials, seconds(60))},
                          pair.now, test_now_s);
    Speaker speaker(*ChannelContext::accepting_nodes(pair.host_credentials));
    std::string expected = "stream_open_expected";
    Message answer = StreamOpen{experiment + 1};
    SECTION("another experiment's") {}
    SECTION("data") {
        answer = Pair::data(10);
    }
    SECTION("a reason is believed") {
        answer = ErrorNotice{ErrorKind::overloaded, "busy", "later"};
        expected = "busy";
    }
    speaker.talk(pair.client, 1, answer, pair.now);
    pair.client.core.tick(pair.now + seconds(3));
    CHECK(why_closed(pair.client) == expected);
    CHECK(pair.client.take<PeerOpened>().empty());
}

TEST_CASE("a stranger that shows no certificate, or wants to enrol, gets nothing from a node", "[wire][streams]") {
    Pair pair;
    pair.allow();
    Node joining(std::nullopt, std::nullopt);
    REQUIRE(pair.host.core.accept(1, "192.0.2.1:5000", pair.now));
    const auto key = *certificate_key_digest(pair.federation.authority.certificate);
    joining.core.dial(1, {.to = {"192.0.2.2", 7401}, .kind = ConnectionKind::join, .authority_key = key}, pair.now,
                      test_now_s);
    for (int turn = 0; turn < 4; ++turn) {
        pair.pass(joining, pair.host);
        pair.pass(pair.host, joining);
    }
    CHECK(why_closed(joining).empty());
    joining.core.tick(pair.now + seconds(1));
    CHECK(why_closed(joining) == "wrong_protocol");
    CHECK(pair.host.take<PeerOpened>().empty());
}

TEST_CASE("a node's streams show the certificate of its session until the next one begins", "[wire][streams]") {
    Pair pair;
    pair.allow();
    const auto renewed = pair.federation.node(Role::client, "site-a");
    pair.client.core.use({*ChannelContext::accepting_nodes(renewed), *ChannelContext::connecting(renewed),
                          *ChannelContext::connecting_to_nodes(renewed)});
    pair.dial(1);
    CHECK(pair.host.take<PeerOpened>().size() == 1);
    pair.client.core.dial(50, {.to = {"192.0.2.9", 7400}}, pair.now, test_now_s);  // the next session
    pair.client.core.lose(50, bye("enough"));
    pair.dial(2);
    CHECK(pair.host.take<PeerOpened>().empty());
    pair.host.core.allow_streams({Pair::line(renewed, seconds(60))});
    pair.dial(3);
    CHECK(pair.host.take<PeerOpened>().size() == 1);
}

}  // namespace
}  // namespace causeway
