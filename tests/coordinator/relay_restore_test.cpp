// A round of relays after a restart: from its decisions alone it goes on as if nothing had been, and begins anew what
// is lost.
#include <set>

#include <catch2/catch.hpp>

#include "common/random.h"
#include "relay_bench.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;
using RestoreSide = RelayBench::Side;

/// What an earlier process had decided, in a machine that has heard nobody yet.
RelayBench restored(const RelayRoundPlan& plan, const RelayBench& before) {
    RelayBench bench(plan, before.now);
    for (const auto& decision : before.log) {
        bench.round.restore(decision);
    }
    bench.log = before.log;
    return bench;
}

struct History {
    std::uint64_t seed = 0;
    std::uint64_t calls = 0;
    std::uint64_t below(std::uint64_t bound) { return random_bits(seed, ++calls) % bound; }
    static std::uint64_t random_bits(std::uint64_t seed, std::uint64_t call) {
        const auto hash = sha256(std::to_string(seed) + " " + std::to_string(call));
        return std::stoull(hash.hex().substr(0, 15), nullptr, 16);
    }
};

RelayRoundPlan random_plan(History& random) {
    Groups groups(1 + random.below(3));
    std::vector<std::string> hosts;
    for (std::size_t i = 0; i < 3 + random.below(5); ++i) {
        groups[i % groups.size()].push_back("c" + std::to_string(i));
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
        hosts.push_back("h" + std::to_string(1 + i % 2));
    }
    auto plan = relay_plan(std::move(groups), std::move(hosts));
    plan.relay.handover_copy = random.below(2) == 0 ? RelayPlan::Copy::coordinator : RelayPlan::Copy::none;
    return plan;
}

/// Under way: {client, its group's turn is known to both}.
std::vector<std::string> at_work(const RelayBench& bench) {
    std::vector<std::string> names;
    const auto rows = bench.round.status(0s);
    for (const auto& row : rows.items()) {
        if (row["attempt"].integer() != 0) {
            names.push_back(row["node"].text());
        }
    }
    return names;
}

/// Something happens that a run may see: a hand-over, a loss for long, a decline, a host that goes for good.
void happen(RelayBench& bench, History& random) {
    const auto names = at_work(bench);
    if (names.empty()) {
        return;
    }
    const auto& name = names[random.below(names.size())];
    switch (random.below(8)) {
        case 0:
            bench.go(name);
            bench.tick(bench.now + 60s);
            break;
        case 1:
            bench.decline(name, RestoreSide::client, "policy");
            break;
        case 2: {
            const auto host = bench.turns.at({name, RestoreSide::host}).node;
            bench.go(host);
            bench.tick(bench.now + 60s);
            bench.come(host);
            break;
        }
        case 3:
            bench.decline(name, RestoreSide::host, "stream_lost");
            break;
        default:
            bench.hand_over(name);
    }
}

/// From here on everybody does its work.
void to_the_end(RelayBench& bench) {
    for (int turn = 0; turn < 100; ++turn) {
        const auto names = at_work(bench);
        if (names.empty()) {
            return;
        }
        bench.hand_over(names.front());
    }
    FAIL("the round has no end");
}

void all_there(RelayBench& bench) {
    for (const auto& host : {"h1", "h2"}) {
        bench.come(host);
    }
    for (const auto& client : std::vector<std::string>(bench.round.plan().cohort)) {
        bench.come(client);
    }
}

std::map<std::string, std::pair<Digest, Digest>> starts(const RelayBench& bench) {
    std::map<std::string, std::pair<Digest, Digest>> all;
    for (const auto& name : at_work(bench)) {
        all[name] = {bench.turn(name, RestoreSide::client).model, bench.turn(name, RestoreSide::host).model};
    }
    return all;
}

}  // namespace

TEST_CASE("a restart anywhere gives the same next turns and the same end", "[relay_round]") {
    std::set<std::string> seen;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        INFO("seed " << seed);
        History random{.seed = seed};
        const auto plan = random_plan(random);
        RelayBench whole(plan);
        all_there(whole);
        whole.opened();
        for (std::uint64_t i = random.below(12); i > 0; --i) {
            happen(whole, random);
        }
        auto again = restored(plan, whole);
        all_there(again);
        CHECK(again.turns.empty());
        again.opened();
        all_there(whole);  // who was away comes back to the other one too
        CHECK(starts(again) == starts(whole));
        CHECK(again.round.participants() == whole.round.participants());
        to_the_end(again);
        to_the_end(whole);
        CHECK(again.results() == whole.results());
        CHECK(again.round.participants() == whole.round.participants());
        CHECK(again.round.possible() == whole.round.possible());
        CHECK(again.round.outcome() == whole.round.outcome());
        CHECK((again.round.train_loss() == whole.round.train_loss() || whole.round.participants().empty()));
        for (const auto& decision : whole.log) {
            seen.insert(decision.kind);
        }
    }
    CHECK(seen == std::set<std::string>{"dropped", "handover", "moved", "restarted", "skipped"});
}

TEST_CASE("a round that was all handed over is complete after a restart, once its segments are seen to",
          "[relay_round]") {
    const auto plan = relay_plan({{"a"}});
    RelayBench before(plan);
    before.all_come();
    before.opened();
    before.hand_over("a");
    auto bench = restored(plan, before);
    CHECK(bench.round.outcome() == Round::Outcome::open);
    bench.opened();
    CHECK(bench.round.outcome() == Round::Outcome::complete);
    CHECK(bench.results() == before.results());
}

TEST_CASE("a group whose last segments are lost begins anew, the others go on", "[relay_round]") {
    const auto* side = GENERATE("client_segment", "server_segment");
    const auto plan = relay_plan({{"a", "b", "x"}, {"c", "d"}}, {"h1", "h1"});
    RelayBench before(plan);
    before.all_come();
    before.opened();
    before.hand_over("a");
    before.hand_over("c");
    before.decline("b", RestoreSide::client, "policy");
    auto bench = restored(plan, before);
    bench.all_come();
    bench.opened({*digest_from_hex(before.log.at(0).detail[side].text())});
    CHECK(bench.count("restarted") == 1);
    CHECK_FALSE(bench.round.counted("a"));
    CHECK(bench.turn("a", RestoreSide::client).model == RelayBench::client_start);
    CHECK(bench.turn("a", RestoreSide::host).model == RelayBench::host_start);
    CHECK(bench.turn("d").model == before.turn("d").model);
    for (const auto* name : {"a", "x", "d"}) {  // b stays left out
        bench.hand_over(name);
    }
    CHECK(bench.round.outcome() == Round::Outcome::complete);
    CHECK(bench.round.participants().size() == 4);
    CHECK(bench.results()[0].examples == 10);
}

TEST_CASE("segments that are lost after the end of the tours begin them anew as well", "[relay_round]") {
    auto plan = relay_plan({{"a", "b"}});
    RelayBench bench(plan);
    bench.all_come();
    bench.opened();
    bench.hand_over("a");
    bench.hand_over("b");
    const auto end = bench.results();
    bench.opened({end[0].segments[1]});
    CHECK(bench.round.outcome() == Round::Outcome::open);
    bench.hand_over("a");
    bench.hand_over("b");
    CHECK(bench.results() == end);  // and come to the same
}

TEST_CASE("a loss that nobody knows is unknown after a restart too", "[relay_round]") {
    const auto plan = relay_plan({{"a", "b"}});
    RelayBench before(plan);
    before.all_come();
    before.opened();
    auto update = before.made("a", RestoreSide::host);
    update.metrics.loss = std::numeric_limits<double>::quiet_NaN();
    before.offer("a", RestoreSide::client);
    before.offer("a", RestoreSide::host, update);
    before.absorbed("a", RestoreSide::client);
    before.absorbed("a", RestoreSide::host);
    before.hand_over("b");
    // As the store gives it back: through its text.
    for (auto& decision : before.log) {
        decision.detail = *Json::parse(decision.detail.dump());
    }
    auto bench = restored(plan, before);
    CHECK(bench.round.train_loss() == before.round.train_loss());
}

}  // namespace causeway
