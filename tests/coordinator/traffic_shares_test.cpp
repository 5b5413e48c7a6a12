// Bytes of experiments that run at one time: each has its own, and together they are what the sockets have moved.
#include "coordinator/traffic_shares.h"

#include <catch2/catch.hpp>

namespace causeway {

static bool operator==(const Traffic& a, const Traffic& b) {
    return a.received == b.received && a.sent == b.sent;
}

TEST_CASE("an experiment that runs alone has all that moves, also what moved before it began", "[unit][traffic]") {
    TrafficShares shares;
    shares.begin(1, {{1000, 2000}, {}});
    CHECK(shares.of(1, {{1500, 2600}, {100, 200}}) == Traffic{1500, 2600});
    shares.chunk_came(1, 400);  // noted a moment late: it is among the total
    CHECK(shares.of(1, {{2500, 2600}, {1100, 200}}) == Traffic{2500, 2600});
    shares.end(1, {{2600, 2700}, {1100, 200}});
    shares.begin(2, {{9000, 9000}, {1100, 200}});
    CHECK(shares.of(2, {{9100, 9200}, {1100, 200}}) == Traffic{6500, 6500});
    CHECK(shares.of(1, {{9100, 9200}, {1100, 200}}) == Traffic{0, 0});  // over
}

TEST_CASE("of two experiments each has its own chunks and half of what is no transfer's", "[unit][traffic]") {
    TrafficShares shares;
    const auto large = sha256("a large model");
    const auto small = sha256("a small one");
    shares.begin(1, {});
    CHECK_FALSE(shares.several());
    shares.begin(2, {{100, 100}, {}});
    CHECK(shares.several());
    shares.open_round(1, large);
    shares.open_round(2, small);
    shares.chunk_came(1, 1'000'000);
    shares.chunk_came(2, 1000);
    shares.chunk_went(large, 2'000'000);
    shares.chunk_went(small, 2000);
    shares.chunk_went(sha256("of nobody"), 5000);
    const SocketTotals now{{100 + 1'001'000 + 500, 100 + 2'002'000 + 700}, {1'001'000, 2'002'000}};
    CHECK(shares.of(2, now) == Traffic{1000 + 250, 2000 + 350});
    CHECK(shares.of(1, now) == Traffic{100 + 1'000'000 + 250, 100 + 2'000'000 + 350});  // 100: from its time alone
    shares.end(1, now);
    CHECK_FALSE(shares.several());
    CHECK(shares.of(2, {{now.all.received + 10, now.all.sent + 20}, now.bulk}) == Traffic{1260, 2370});
}

TEST_CASE("a model that both start from is halved, and one of the round before last is nobody's", "[unit][traffic]") {
    TrafficShares shares;
    const auto model = sha256("of both");
    shares.begin(1, {});
    shares.begin(2, {});
    shares.open_round(1, model);
    shares.open_round(2, model);
    shares.chunk_went(model, 1000);
    CHECK(shares.of(1, {}) == Traffic{0, 500});
    CHECK(shares.of(2, {}) == Traffic{0, 500});
    shares.open_round(1, sha256("next"));
    shares.serves(1, sha256("a segment"));
    shares.chunk_went(model, 1000);  // to who comes late
    shares.chunk_went(sha256("a segment"), 100);
    CHECK(shares.of(1, {}) == Traffic{0, 1100});
    shares.open_round(1, sha256("after that"));
    shares.chunk_went(model, 1000);
    CHECK(shares.of(1, {}) == Traffic{0, 1100});
    CHECK(shares.of(2, {}) == Traffic{0, 2000});
}

TEST_CASE("totals that are not of one instant make no share fall, and nothing is lost by them", "[unit][traffic]") {
    TrafficShares shares;
    shares.begin(1, {});
    shares.begin(2, {});
    CHECK(shares.of(1, {{1000, 0}, {400, 0}}) == Traffic{300, 0});
    CHECK(shares.of(1, {{1000, 0}, {900, 0}}) == Traffic{300, 0});
    CHECK(shares.of(1, {{1700, 0}, {900, 0}}) == Traffic{400, 0});
    CHECK(shares.of(2, {{1700, 0}, {900, 0}}) == Traffic{400, 0});
}

TEST_CASE("a chunk at the socket is its bytes and those of its records", "[unit][traffic]") {
    CHECK(bytes_at_socket(1) == 23);
    CHECK(bytes_at_socket(16 * 1024) == 16 * 1024 + 22);
    CHECK(bytes_at_socket(1 << 20) == (1 << 20) + 64 * 22);
}

}  // namespace causeway
