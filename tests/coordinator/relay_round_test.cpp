// The turns of an open round of relays: which counts, what a loss rolls back, where a group goes on, when it closes.
#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "coordinator/limits.h"
#include "relay_bench.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;
using RoundSide = RelayBench::Side;

constexpr auto client = RoundSide::client;
constexpr auto host = RoundSide::host;

const Error gone{ErrorKind::disconnected, "disconnected", "gone"};

/// Everybody is there and the first turns are under way.
RelayBench round_under_way(RelayRoundPlan plan, const std::vector<std::string>& hosts = {"h1"}) {
    RelayBench bench(std::move(plan));
    bench.all_come(hosts);
    bench.opened();
    return bench;
}

}  // namespace

TEST_CASE("nobody is assigned before the round's segments are there", "[relay_round]") {
    RelayBench bench(relay_plan({{"a", "b"}}));
    bench.all_come();
    CHECK(bench.turns.empty());
    bench.opened();
    REQUIRE(bench.turns.size() == 2);
    CHECK(bench.turn("a", client).model == RelayBench::client_start);
    CHECK(bench.turn("a", host).model == RelayBench::host_start);
    CHECK(bench.turn("a", host).model_bytes == 20);
    CHECK(bench.turn("a", client).peers == std::vector<CellPeer>{{1, "h1"}});
    CHECK(bench.turn("a", host).peers == std::vector<CellPeer>{{0, "a"}});
    CHECK(bench.turn("a", host).examples == 5);
}

TEST_CASE("a tour's clients may stream with its host before their turns, and until the round is over",
          "[relay_round]") {
    RelayBench bench(relay_plan({{"a", "b"}, {"c"}}, {"h1", "h2"}));
    CHECK(bench.round.streams().empty());  // nobody is there
    bench.all_come({"h1", "h2"});
    const std::vector<StreamPair> everybody{{"a", "h1"}, {"b", "h1"}, {"c", "h2"}};
    CHECK(bench.round.streams() == everybody);  // before anybody is assigned
    bench.opened();
    bench.hand_over("a");
    bench.hand_over("c");
    CHECK(bench.round.streams() == everybody);
    SECTION("but not one that has no session") {
        bench.go("a");
        CHECK(bench.round.streams() == std::vector<StreamPair>{{"b", "h1"}, {"c", "h2"}});
        bench.come("a");
        CHECK(bench.round.streams() == everybody);
    }
    SECTION("nor one that is out of the round") {
        bench.decline("b", client, "policy");
        CHECK(bench.round.streams() == std::vector<StreamPair>{{"a", "h1"}, {"c", "h2"}});
    }
    SECTION("nor with a host that is gone; with the one that takes over") {
        bench.go("h1");
        CHECK(bench.round.streams() == std::vector<StreamPair>{{"c", "h2"}});
        bench.tick(60s);
        CHECK(bench.round.streams() == std::vector<StreamPair>{{"a", "h2"}, {"b", "h2"}, {"c", "h2"}});
    }
}

TEST_CASE("of more clients than a host keeps streams for, those may that are at work or next", "[relay_round]") {
    std::vector<std::string> tour;
    for (std::size_t i = 0; i <= limits::streams_held; ++i) {
        tour.push_back("c" + std::to_string(100 + i));
    }
    auto bench = round_under_way(relay_plan({tour}));
    CHECK(bench.round.streams() == std::vector<StreamPair>{{"c100", "h1"}, {"c101", "h1"}});
    bench.hand_over("c100");
    CHECK(bench.round.streams() == std::vector<StreamPair>{{"c101", "h1"}, {"c102", "h1"}});
    bench.step([&] { bench.round.expel("c102", "revoked", "by root", bench.last); });
    CHECK(bench.round.streams() == std::vector<StreamPair>{{"c101", "h1"}, {"c103", "h1"}});
    auto fewer = tour;
    fewer.pop_back();
    CHECK(round_under_way(relay_plan({fewer})).round.streams().size() == limits::streams_held);
}

TEST_CASE("a turn counts only when both segments are here, in either order", "[relay_round]") {
    const auto first = GENERATE(client, host);
    const auto second = first == client ? host : client;
    auto bench = round_under_way(relay_plan({{"a", "b"}}));
    bench.offer("a", first);
    bench.absorbed("a", first);
    bench.offer("a", second);
    CHECK(bench.count("handover") == 0);
    CHECK(bench.attempt("b") == 0);
    const auto end = bench.made("a", client).digest;
    bench.absorbed("a", second);
    CHECK(bench.count("handover") == 1);
    CHECK(bench.round.counted("a") == end);
    CHECK(sent<Counted>(bench.last, bench.sessions["a"]) != nullptr);
    CHECK(sent<Counted>(bench.last, bench.sessions["h1"]) != nullptr);
    CHECK(bench.turn("b").model == end);  // and the next goes on from there
    bench.hand_over("b");
    CHECK(bench.round.outcome() == Round::Outcome::complete);
    REQUIRE(bench.results().size() == 1);
    CHECK(bench.results()[0].examples == 10);
}

TEST_CASE("what is said under the number of another turn changes nothing", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}}));
    bench.hand_over("a");
    const auto late = bench.made("a", client);
    bench.offer("a", client);
    REQUIRE(sent<Refused>(bench.last, bench.sessions["a"]) != nullptr);
    CHECK(sent<Refused>(bench.last, bench.sessions["a"])->code == "stale_lease");
    bench.absorbed("a", client);
    bench.decline("a", client, "no");
    bench.decline("a", host, "stream_lost");
    CHECK(bench.round.counted("a") == late.digest);
    CHECK(bench.count("dropped") == 0);
    CHECK(bench.attempt("b") == 2);
    bench.hand_over("b");
    CHECK(bench.count("handover") == 2);
}

TEST_CASE("nobody but its two nodes can offer in a turn, decline it or break it off", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a"}, {"c"}}, {"h1", "h2"}), {"h1", "h2"});
    const auto lease = bench.turn("a").lease;
    bench.step([&] { bench.round.on_decline("c", Decline{lease, "stream_lost", ""}, bench.last); });
    bench.step([&] { bench.round.on_decline("h2", Decline{lease, "no", ""}, bench.last); });
    CHECK(bench.attempt("a") == lease.attempt);
    CHECK(bench.attempt("c") == 2);
    bench.step([&] {
        bench.round.on_offer("c", bench.sessions["c"], Offer{lease, bench.made("a", client)}, bench.last);
    });
    CHECK(bench.jobs.empty());
    bench.hand_over("a");
    bench.hand_over("c");
    CHECK(bench.round.outcome() == Round::Outcome::complete);
}

TEST_CASE("a client that comes back in time begins its turn anew, under another number", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}}));
    bench.offer("a", client);
    bench.go("a");
    CHECK(bench.round.streams() == std::vector<StreamPair>{{"b", "h1"}});
    bench.tick(59s);
    CHECK(bench.attempt("b") == 0);  // its group waits
    bench.come("a");
    CHECK(bench.attempt("a") == 2);
    bench.hand_over("a");
    CHECK(bench.attempt("b") == 3);
    CHECK(bench.count("dropped") == 0);
}

TEST_CASE("a client that does not come back in time is left out, and its group goes on", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}}));
    bench.go("a");
    CHECK(bench.round.deadline() == 60s);
    bench.tick(60s);
    CHECK(bench.count("dropped") == 1);
    CHECK(bench.count("skipped") == 1);
    CHECK(bench.turn("b").model == RelayBench::client_start);
    bench.come("a");  // too late: it hears what has become of it
    CHECK(bench.drop_code("a") == "gone");  // its connection had ended
    bench.hand_over("b");
    CHECK(bench.round.outcome() == Round::Outcome::complete);
    CHECK(bench.round.participants().size() == 1);
}

TEST_CASE("with lost_client = skip, or with rejoin = 0, nobody waits for a lost client", "[relay_round]") {
    auto plan = relay_plan({{"a", "b"}});
    SECTION("skip") {
        plan.relay.lost_client = RelayPlan::LostClient::skip;
    }
    SECTION("rejoin = 0") {
        plan.round.rejoin = 0s;
    }
    auto bench = round_under_way(std::move(plan));
    bench.go("a");
    CHECK(bench.attempt("b") == 2);
    CHECK(bench.count("skipped") == 1);
}

TEST_CASE("a host that is back in time goes on with its group from the last hand-over", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}}));
    bench.hand_over("a");
    const auto start = bench.turn("b").model;
    bench.go("h1");
    bench.tick(59s);
    bench.come("h1");
    CHECK(bench.attempt("b") == 3);
    CHECK(bench.turn("b").model == start);
    CHECK(bench.count("moved") == 0);
}

TEST_CASE("the groups of a lost host go on at another one, from the last hand-over", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}, {"c"}}, {"h1", "h2"}), {"h1", "h2"});
    bench.hand_over("a");
    const auto start = bench.turn("b", host).model;
    CHECK(start != RelayBench::host_start);
    bench.go("h1");
    bench.tick(60s);
    CHECK(bench.count("moved") == 1);
    CHECK(bench.turns.at({"b", host}).node == "h2");
    CHECK(bench.turn("b", host).model == start);
    CHECK(bench.turn("b", client).peers == std::vector<CellPeer>{{1, "h2"}});
    CHECK(bench.attempt("c") == 2);  // that of the other group is not touched
    bench.hand_over("b");
    bench.hand_over("c");
    CHECK(bench.round.outcome() == Round::Outcome::complete);
    CHECK(bench.results()[0].examples == 10);
}

TEST_CASE("groups move to the host that has the fewest", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a"}, {"b"}, {"c"}}, {"h1", "h2", "h2"}), {"h1", "h2", "h3"});
    bench.go("h1");
    bench.tick(60s);
    CHECK(bench.turns.at({"a", host}).node == "h3");
}

TEST_CASE("a host that served one group to its end is still told of the commit when its others move", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a"}, {"b"}}, {"h1", "h1"}), {"h1", "h2"});
    bench.hand_over("a");
    bench.go("h1");
    bench.tick(60s);
    CHECK(bench.round.hosts() == std::vector<std::string>{"h1", "h2"});
    bench.hand_over("b");
    CHECK(bench.round.outcome() == Round::Outcome::complete);
}

TEST_CASE("without another host a group waits for one, and fails when none comes", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}}));
    bench.hand_over("a");
    const auto start = bench.turn("b").model;
    bench.go("h1");
    bench.tick(60s);
    CHECK(bench.round.outcome() == Round::Outcome::open);
    CHECK(bench.round.deadline() == 160s);
    SECTION("one comes") {
        bench.now = 159s;
        bench.come("h2");
        CHECK(bench.turns.at({"b", host}).node == "h2");
        CHECK(bench.turn("b").model == start);
        bench.tick(500s);
        CHECK(bench.round.outcome() == Round::Outcome::open);
        bench.hand_over("b");
        CHECK(bench.round.outcome() == Round::Outcome::complete);
    }
    SECTION("none comes") {
        bench.tick(160s);
        CHECK(bench.round.outcome() == Round::Outcome::no_host);
    }
}

TEST_CASE("a host that declines is no host of the round, and is named when there is no other", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a"}}));
    bench.decline("a", host, "policy");
    CHECK(bench.round.outcome() == Round::Outcome::open);
    bench.tick(100s);
    CHECK(bench.round.outcome() == Round::Outcome::no_host);
    CHECK(bench.round.why_missing() == "; h1: policy: why");
}

TEST_CASE("a client that declines is left out, a host that declines is replaced", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}}), {"h1", "h2"});
    bench.decline("a", client, "policy");
    CHECK(bench.drop_code("a") == "declined");
    CHECK(bench.attempt("b") == 2);
    bench.decline("b", host, "policy");
    CHECK(bench.turns.at({"b", host}).node == "h2");
    CHECK(bench.attempt("b") == 3);
    CHECK(bench.count("dropped") == 1);
}

TEST_CASE("a lost stream begins the turn anew; a client whose streams break five times is left out", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}}));
    for (std::uint32_t time = 1; time < 5; ++time) {
        bench.decline("a", time % 2 == 0 ? client : host, "stream_lost");
        CHECK(bench.attempt("a") == time + 1);
        CHECK(bench.count("dropped") == 0);
    }
    bench.decline("a", host, "stream_lost");
    CHECK(bench.drop_code("a") == "stream_lost");
    CHECK(bench.attempt("b") == 6);
}

TEST_CASE("a refused segment leaves the client out, and the group goes on from the hand-over before", "[relay_round]") {
    const auto refused = GENERATE(client, host);
    auto bench = round_under_way(relay_plan({{"a", "b", "c"}}));
    bench.hand_over("a");
    const auto start = bench.turn("b").model;
    bench.offer("b", client);
    bench.offer("b", host);
    bench.absorbed("b", refused, {}, Refused{{}, {}, "non_finite", "NaN", "", 0});
    CHECK(bench.drop_code("b") == "non_finite");
    CHECK(bench.turn("c").model == start);
    bench.hand_over("c");
    CHECK(bench.round.outcome() == Round::Outcome::complete);
    CHECK(bench.results()[0].examples == 10);
    CHECK(bench.round.why_missing().find("b: non_finite") != std::string::npos);
}

TEST_CASE("a segment trained from another one does not count", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}}));
    SECTION("a client's leaves it out") {
        auto other = bench.made("a", client);
        other.start_model = sha256(std::string_view("other"));
        bench.offer("a", client, other);
        CHECK(bench.drop_code("a") == "wrong_start_model");
        CHECK(bench.attempt("b") == 2);
    }
    SECTION("a host's begins the turn anew") {
        auto other = bench.made("a", host);
        other.start_model = sha256(std::string_view("other"));
        bench.offer("a", host, other);
        CHECK(bench.attempt("a") == 2);
    }
    SECTION("a weight that is none leaves its client out") {
        auto other = bench.made("a", client);
        other.weight = GENERATE(as<std::int64_t>{}, -1, std::int64_t{1} << 29, INT64_MAX);
        bench.offer("a", client, other);
        CHECK(bench.drop_code("a") == "bad_weight");
    }
    SECTION("one larger than any of its layers can be leaves its client out") {
        auto other = bench.made("a", client);
        other.bytes = GENERATE(as<std::uint64_t>{}, 4 * 10 + (1 << 20) + 1, std::uint64_t{1} << 61);
        bench.offer("a", client, other);
        CHECK(bench.drop_code("a") == "too_large");
    }
    CHECK(bench.jobs.empty());
}

TEST_CASE("a full disk is this machine's fault: it pauses, tries again, and nobody is dropped", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a"}}));
    bench.offer("a", client);
    bench.offer("a", host);
    bench.absorbed("a", host);
    for (int i = 0; i < 20; ++i) {
        bench.absorbed("a", client, Error{ErrorKind::io, "disk_full", "no room"});
        CHECK(bench.round.machine_fault() == "disk_full: no room");
        const auto jobs = bench.jobs.size();
        bench.tick(bench.round.deadline());
        CHECK(bench.jobs.size() == jobs + 1);
    }
    bench.absorbed("a", client);
    CHECK(bench.round.machine_fault().empty());
    CHECK(bench.round.outcome() == Round::Outcome::complete);
    CHECK(bench.count("dropped") == 0);
}

TEST_CASE("a broken transfer is asked for again, and after some tries the turn begins anew", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a"}}));
    bench.offer("a", client);
    int tries = 0;
    for (; tries < 20 && bench.attempt("a") == 1; ++tries) {
        bench.absorbed("a", client, gone);
        bench.tick(std::min(bench.round.deadline(), bench.now + 60s));
    }
    CHECK(tries == 6);
    CHECK(bench.jobs.size() == 6);
    CHECK(bench.attempt("a") == 2);
}

TEST_CASE("a turn that hangs is ended and its client left out", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}}));
    bench.tick(1000s);
    CHECK(bench.attempt("b") == 0);  // before the first step it may be fetching
    bench.now = 1000s;
    bench.progress("a", 1);
    bench.now = 1010s;
    bench.progress("a", 2);  // it has 20 times its longest pause, of 1000 s
    CHECK(bench.round.deadline() == 1010s + 20000s);
    bench.tick(1010s + 20000s);
    CHECK(bench.drop_code("a") == "no_progress");
    bench.progress("b", 1);
    const auto begun = bench.now;
    bench.tick(begun + 59s);
    CHECK(bench.drop_code("b").empty());
    bench.tick(begun + 60s);
    CHECK(bench.drop_code("b") == "no_progress");
    CHECK(bench.round.outcome() == Round::Outcome::quorum_lost);
}

TEST_CASE("the side that has not offered hangs as well", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a"}}));
    bench.offer("a", client);
    CHECK(bench.round.deadline() == 60s);
    bench.offer("a", host);  // now it waits for this machine
    CHECK(bench.round.deadline() == never);
}

TEST_CASE("the other side's time is counted from the offer, however long nothing was heard before", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a"}}));
    bench.now = 500s;
    bench.offer("a", client);
    CHECK(bench.round.deadline() == 560s);
    bench.tick(501s);
    CHECK(bench.count("dropped") == 0);
}

TEST_CASE("the wait for another host is counted from the loss", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a"}}));
    bench.tick(500s);
    bench.step([&] { bench.round.expel("h1", "revoked", "by root", bench.last); });
    CHECK(bench.round.deadline() == 600s);
    bench.tick(501s);
    CHECK(bench.round.outcome() == Round::Outcome::open);
}

TEST_CASE("at the straggler deadline the round closes with what was handed over", "[relay_round]") {
    auto plan = relay_plan({{"a", "b"}, {"c"}}, {"h1", "h1"});
    plan.round.straggler_deadline = 10s;
    auto bench = round_under_way(std::move(plan));
    CHECK(bench.turn("a").deadline_ms == 10000);
    bench.now = 4s;
    bench.hand_over("a");
    CHECK(bench.turn("b").deadline_ms == 6000);
    CHECK(bench.round.deadline() == 10s);
    bench.tick(10s);
    CHECK(bench.drop_code("b") == "straggler_deadline");
    CHECK(bench.drop_code("c") == "straggler_deadline");
    CHECK(bench.round.outcome() == Round::Outcome::complete);
    CHECK(bench.results().size() == 1);
    CHECK(bench.round.take_dropped().size() == 2);
    CHECK(bench.round.deadline() == never);
}

TEST_CASE("the quorum of relays is lost as soon as it cannot be reached", "[relay_round]") {
    auto plan = relay_plan({{"a", "b", "c"}});
    plan.round.quorum = {CountOrShare::Kind::count, 2, 0};
    auto bench = round_under_way(std::move(plan));
    bench.hand_over("a");
    bench.decline("b", client, "no");
    CHECK(bench.round.outcome() == Round::Outcome::open);
    bench.step([&] { bench.round.expel("c", "revoked", "by root", bench.last); });
    CHECK(bench.round.outcome() == Round::Outcome::quorum_lost);
}

TEST_CASE("an expelled host's groups move, what an expelled client has handed over stays", "[relay_round]") {
    auto bench = round_under_way(relay_plan({{"a", "b"}}), {"h1", "h2"});
    bench.hand_over("a");
    bench.step([&] { bench.round.expel("a", "revoked", "by root", bench.last); });
    CHECK(bench.round.counted("a").has_value());
    bench.step([&] { bench.round.expel("h1", "revoked", "by root", bench.last); });
    CHECK(bench.turns.at({"b", host}).node == "h2");
}

TEST_CASE("the mean training loss does not depend on the order of hand-overs", "[relay_round]") {
    const auto loss_of = [](const std::vector<std::string>& order) {
        auto bench = round_under_way(relay_plan({{"a"}, {"b"}, {"c"}}, {"h1", "h1", "h1"}));
        for (const auto& name : order) {
            bench.offer(name, client);
            auto update = bench.made(name, host);
            update.metrics.loss = name == "a" ? 0.1 : name == "b" ? 1e17 : -1e17;
            bench.offer(name, host, update);
            bench.absorbed(name, client);
            bench.absorbed(name, host);
        }
        return bench.round.train_loss();
    };
    CHECK(loss_of({"a", "b", "c"}) == loss_of({"c", "b", "a"}));
    CHECK(loss_of({"a", "b", "c"}) == loss_of({"b", "c", "a"}));
}

TEST_CASE("who counts and is gone is waited for once more, and no longer, when its group begins anew",
          "[relay_round]") {
    auto plan = relay_plan({{"a", "b"}});
    plan.relay.handover_copy = RelayPlan::Copy::none;
    auto bench = round_under_way(std::move(plan));
    bench.hand_over("a");
    bench.go("a");
    bench.tick(60s);
    CHECK(bench.count("dropped") == 0);
    bench.go("h1");
    bench.come("h1");
    CHECK(bench.count("restarted") == 1);
    CHECK_FALSE(bench.round.counted("a"));
    CHECK(bench.round.deadline() == 120s);
    bench.tick(120s);
    CHECK(bench.count("dropped") == 1);
    CHECK(bench.turn("b").model == RelayBench::client_start);
    bench.hand_over("b");
    CHECK(bench.round.outcome() == Round::Outcome::complete);
}

}  // namespace causeway
