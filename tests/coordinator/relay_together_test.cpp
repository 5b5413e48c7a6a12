// Turns that are together: one number, one host, all clients; they count at once or not at all.
#include <catch2/catch.hpp>

#include "relay_bench.h"

namespace causeway {
namespace {

using TogetherSide = RelayBench::Side;
const std::string all;  // whom the host's side of such a turn is about

RelayBench together_under_way(const std::vector<std::string>& hosts = {"h1"}) {
    auto plan = relay_plan({{"c"}, {"a"}, {"b"}});
    plan.client.cell = 2;
    plan.relay.turns = RelayPlan::Turns::together;
    RelayBench bench(std::move(plan));
    bench.all_come(hosts);
    bench.opened();
    return bench;
}

void everybody_offers(RelayBench& bench) {
    for (const auto* client : {"a", "b", "c"}) {
        bench.offer(client, TogetherSide::client);
    }
    bench.offer(all, TogetherSide::host);
}

}  // namespace

TEST_CASE("the host has every client as a peer, in the order of names, under the clients' own number",
          "[relay_round][together]") {
    auto bench = together_under_way();
    const auto& host = bench.turn(all, TogetherSide::host);
    CHECK(host.peers == std::vector<CellPeer>{{2, "a", 5}, {3, "b", 5}, {4, "c", 5}});
    CHECK(host.examples == 15);
    CHECK(host.cell == 1);
    for (const auto* client : {"a", "b", "c"}) {
        const auto& own = bench.turn(client);
        CHECK(own.lease == host.lease);
        CHECK(own.model == RelayBench::client_start);
        CHECK(own.peers == std::vector<CellPeer>{{1, "h1"}});
        CHECK(own.examples == 5);
    }
    CHECK(bench.turn("b").cell == 3);
    CHECK(bench.round.streams().size() == 3);
}

TEST_CASE("nothing counts before all of it is here, then all does", "[relay_round][together]") {
    auto bench = together_under_way();
    everybody_offers(bench);
    bench.absorbed("a", TogetherSide::client);
    bench.absorbed(all, TogetherSide::host);
    bench.absorbed("c", TogetherSide::client);
    CHECK(bench.count("handover") == 0);
    CHECK(bench.round.outcome() == Round::Outcome::open);
    bench.absorbed("b", TogetherSide::client);
    CHECK(bench.count("handover") == 3);
    CHECK(bench.round.outcome() == Round::Outcome::complete);
    const auto results = bench.results();
    REQUIRE(results.size() == 3);
    for (const auto& group : results) {
        CHECK(group.segments.at(1) == results.front().segments.at(1));
        CHECK(group.examples == 5);
    }
    CHECK(results[0].segments.at(0) == bench.made("c", TogetherSide::client).digest);  // in the plan's order
}

TEST_CASE("who trains together has no group in any report, and the client that came last is named",
          "[relay_round][together]") {
    auto bench = together_under_way();
    const auto rows = bench.round.status({});
    REQUIRE(rows.items().size() == 3);
    for (const auto& row : rows.items()) {
        CHECK(row["group"].is_null());
        CHECK(row["host"].text() == "h1");
    }
    everybody_offers(bench);
    bench.absorbed("c", TogetherSide::client);
    bench.absorbed(all, TogetherSide::host);
    bench.absorbed("a", TogetherSide::client);
    bench.absorbed("b", TogetherSide::client);
    const auto relays = bench.round.relays();
    CHECK(relays["critical_client"].text() == "b");
    CHECK_FALSE(relays.has("critical_group"));
    CHECK_FALSE(relays.has("groups"));
}

TEST_CASE("a client that is lost takes all of them back to the start; what they had offered is void",
          "[relay_round][together]") {
    auto bench = together_under_way();
    everybody_offers(bench);
    bench.absorbed("a", TogetherSide::client);
    const auto before = bench.attempt("a");
    bench.go("b");
    CHECK(bench.attempt("a") == before);  // everybody waits for it
    bench.tick(bench.now + std::chrono::seconds(61));
    CHECK(bench.drop_code("b").empty());  // it has no session to be told in
    CHECK(bench.attempt("a") > before);
    CHECK(bench.turn(all, TogetherSide::host).peers == std::vector<CellPeer>{{2, "a", 5}, {3, "c", 5}});
    CHECK(bench.turn("a").model == RelayBench::client_start);
    CHECK(bench.count("handover") == 0);
}

TEST_CASE("whom the host names is broken off five times, or left out for what it sent", "[relay_round][together]") {
    auto bench = together_under_way();
    SECTION("a connection") {
        for (int time = 0; time < 5; ++time) {
            CHECK(bench.drop_code("b").empty());
            bench.decline(all, TogetherSide::host, "stream_lost", "b");
        }
        CHECK(bench.drop_code("b") == "stream_lost");
    }
    SECTION("values") {
        bench.decline(all, TogetherSide::host, "not_finite", "b");
        CHECK(bench.drop_code("b") == "not_finite");
    }
    CHECK(bench.turn(all, TogetherSide::host).peers.size() == 2);
    CHECK(bench.drop_code("a").empty());
}

TEST_CASE("a host that declines and names nobody is no host of the round", "[relay_round][together]") {
    auto bench = together_under_way({"h1", "h2"});
    bench.decline(all, TogetherSide::host, "does_not_fit");
    CHECK(bench.turn("a").peers == std::vector<CellPeer>{{1, "h2"}});
    CHECK(bench.count("moved") == 3);
    CHECK(bench.round.streams().size() == 3);
}

TEST_CASE("the client that has done least is left out when the turn stands still", "[relay_round][together]") {
    auto bench = together_under_way();
    bench.progress("a", 5);
    bench.progress("b", 4);
    bench.progress("c", 5);
    bench.tick(bench.round.deadline());
    CHECK(bench.drop_code("b") == "no_progress");
    CHECK(bench.turn(all, TogetherSide::host).peers.size() == 2);
}

}  // namespace causeway
