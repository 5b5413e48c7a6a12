// A stream whose other half says nothing any more: when that shows, what it is, and what is no silence.
#include <catch2/catch.hpp>

#include "tests/wire/stream_pair.h"
#include "wire/stream_assembly.h"

namespace causeway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// How long after this moment the client has lost the stream; not within a minute: a minute.
Duration until_lost(Pair& pair, std::string& code) {
    const auto from = pair.now;
    while (pair.now - from < seconds(60)) {
        pair.run(milliseconds(0));
        if (auto why = why_closed(pair.client); !why.empty()) {
            code = why;
            break;
        }
    }
    return pair.now - from;
}

TEST_CASE("a stream with nothing to say stays, for both halves beat", "[wire][streams]") {
    Pair pair;
    pair.allow(seconds(600));
    pair.dial();
    pair.run(seconds(120));
    CHECK(why_closed(pair.client).empty());
    CHECK(why_closed(pair.host).empty());
    CHECK(pair.client.take<PeerMessage>().empty());  // nobody but the link hears of it
    CHECK(pair.client.core.stream_traffic().received < 120 * 1000);
}

TEST_CASE("a half that stops is lost within two seconds, and its stream ends as silent", "[wire][streams]") {
    Pair pair;
    pair.allow(seconds(600));
    pair.dial();
    pair.run(seconds(20));
    pair.host_stopped = true;
    std::string code;
    CHECK(until_lost(pair, code) <= seconds(2));
    CHECK(code == "silent");
}

TEST_CASE("one that stops before anything is known of the line is given longer, and lost all the same",
          "[wire][streams]") {
    Pair pair;
    pair.allow(seconds(600));
    pair.dial();
    pair.host_stopped = true;
    std::string code;
    const auto took = until_lost(pair, code);
    CHECK(took > seconds(2));
    CHECK(took <= milliseconds(6100));
    CHECK(code == "silent");
}

TEST_CASE("a slow line that moves is no silence, and its bound follows its gaps", "[wire][streams]") {
    Pair pair;
    pair.allow(seconds(600));
    pair.dial();
    pair.every = milliseconds(1500);
    pair.run(seconds(60));
    CHECK(why_closed(pair.client).empty());
    pair.host_stopped = true;
    std::string code;
    const auto took = until_lost(pair, code);
    CHECK(took > milliseconds(2500));
    CHECK(took <= milliseconds(4600));  // three gaps
    CHECK(code == "silent");
}

TEST_CASE("time in which we ourselves stood still is not the peer's silence", "[wire][streams]") {
    Pair pair;
    pair.allow(seconds(600));
    pair.dial();
    pair.run(seconds(20));
    pair.now += seconds(30);
    pair.client.core.forgive(seconds(30));
    pair.host.core.forgive(seconds(30));
    pair.run(seconds(3));
    CHECK(why_closed(pair.client).empty());
    CHECK(why_closed(pair.host).empty());
}

TEST_CASE("how late a stream's beats are answered is told, for its pieces follow it", "[wire][streams]") {
    Pair pair;
    pair.allow(seconds(600));
    pair.dial();
    pair.run(seconds(3));
    const auto quick = pair.client.take<PeerMeasured>();
    REQUIRE_FALSE(quick.empty());
    CHECK(quick.back().round_trip < milliseconds(250));
    pair.every = milliseconds(1500);
    pair.run(seconds(30));
    const auto slow = pair.client.take<PeerMeasured>();
    REQUIRE_FALSE(slow.empty());
    CHECK(slow.back().round_trip >= seconds(1));
}

TEST_CASE("a beat that is not answered yet is told as late, before its stream is lost", "[wire][streams]") {
    Pair pair;
    pair.allow(seconds(600));
    pair.dial();
    pair.run(seconds(20));
    (void)pair.client.take<PeerMeasured>();
    pair.host_stopped = true;
    std::string code;
    (void)until_lost(pair, code);
    const auto told = pair.client.take<PeerMeasured>();
    REQUIRE_FALSE(told.empty());
    CHECK(told.back().round_trip >= seconds(1));
}

TEST_CASE("pieces are as long as the answers of the line allow", "[wire][streams]") {
    CHECK(paced(64 << 10, seconds(3), 1 << 20) == 32 << 10);
    CHECK(paced(20 << 10, seconds(3), 1 << 20) == 16 << 10);
    CHECK(paced(64 << 10, milliseconds(20), 1 << 20) == 128 << 10);
    CHECK(paced(768 << 10, milliseconds(20), 1 << 20) == 1 << 20);
    CHECK(paced(64 << 10, milliseconds(600), 1 << 20) == 64 << 10);
    auto whole = Pair::data(100'000);
    std::size_t pieces = 0;
    StreamAssembly assembly(1 << 20);
    for (std::optional<StreamData> joined; !joined; ++pieces) {
        auto piece = cut_piece(whole, least_stream_bytes);
        CHECK(piece.payload.size() <= least_stream_bytes);
        joined = *assembly.add(std::move(piece));
    }
    CHECK(pieces == 7);
}

}  // namespace
}  // namespace causeway
