// The relays of a round: one client after another, each counted once, whatever is lost on the way.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "common/random.h"
#include "split/relay.h"

namespace causeway {
namespace {

RelayPlan plan_of(Groups groups, RelayPlan::LostClient lost = RelayPlan::LostClient::skip,
                  RelayPlan::Copy copy = RelayPlan::Copy::coordinator) {
    RelayPlan plan{.groups = std::move(groups), .lost_client = lost, .handover_copy = copy};
    for (std::size_t i = 0; i < plan.groups.size(); ++i) {
        plan.hosts.push_back(fmt::format("host-{}", i % 2));
    }
    return plan;
}

/// Stands for training: where a turn ends is a function of where it started and who did it.
Handover trained(const RelayTurn& turn) {
    const auto next = [&](const Digest& digest, const char* which) {
        return sha256(which + turn.client + digest.hex());
    };
    return {next(turn.start.client_segment, "c"), next(turn.start.server_segment, "s")};
}

Handover tour(const std::vector<std::string>& clients) {
    RelayTurn turn;
    for (const auto& client : clients) {
        turn.client = client;
        turn.start = trained(turn);
    }
    return turn.start;
}

}  // namespace

TEST_CASE("groups run side by side, the clients of a group one after another", "[unit][relay]") {
    Relay relay(plan_of({{"a", "b"}, {"c"}}));
    auto turns = relay.take_turns();
    REQUIRE(turns.size() == 2);
    REQUIRE(turns[0].client == "a");
    REQUIRE(turns[1].client == "c");
    REQUIRE(relay.take_turns().empty());
    REQUIRE(relay.handed_over(1, turns[1].attempt, trained(turns[1]), 7));
    REQUIRE(relay.take_turns().empty());
    REQUIRE(relay.handed_over(0, turns[0].attempt, trained(turns[0]), 5));
    REQUIRE_FALSE(relay.handed_over(0, turns[0].attempt, trained(turns[0]), 5));  // said twice
    turns = relay.take_turns();
    REQUIRE(turns.size() == 1);
    REQUIRE(turns[0].client == "b");
    REQUIRE(turns[0].start == tour({"a"}));
    REQUIRE(relay.outcome() == Relay::Outcome::open);
    REQUIRE(relay.handed_over(0, turns[0].attempt, trained(turns[0]), 6));
    REQUIRE(relay.outcome() == Relay::Outcome::complete);
    const auto results = relay.results();
    REQUIRE(results.size() == 2);
    REQUIRE(results[0].segments == tour({"a", "b"}));
    REQUIRE(results[0].examples == 11);
    REQUIRE(results[0].clients == std::vector<std::string>{"a", "b"});
    REQUIRE(relay.counted() == 3);
}

TEST_CASE("a client lost in its turn is rolled back, and its group goes on without it", "[unit][relay]") {
    Relay relay(plan_of({{"a", "b", "c"}}));
    auto turn = relay.take_turns().at(0);
    REQUIRE(relay.handed_over(0, turn.attempt, trained(turn), 1));
    turn = relay.take_turns().at(0);
    relay.lost("b");
    REQUIRE_FALSE(relay.handed_over(0, turn.attempt, trained(turn), 1));  // too late: nothing of it counts
    turn = relay.take_turns().at(0);
    REQUIRE(turn.client == "c");
    REQUIRE(turn.start == tour({"a"}));
    relay.lost("a");  // has counted: stays counted
    REQUIRE(relay.handed_over(0, turn.attempt, trained(turn), 1));
    REQUIRE(relay.results().at(0).clients == std::vector<std::string>{"a", "c"});
    REQUIRE(relay.possible() == 2);
}

TEST_CASE("where the rule is to wait, the group waits for its client until it is skipped", "[unit][relay]") {
    Relay relay(plan_of({{"a", "b"}}, RelayPlan::LostClient::wait));
    const auto first = relay.take_turns().at(0);
    relay.lost("a");
    REQUIRE(relay.take_turns().empty());
    REQUIRE(relay.waits_for(0) == "client");
    relay.present("a");
    const auto again = relay.take_turns().at(0);
    REQUIRE(again.client == "a");
    REQUIRE(again.attempt > first.attempt);
    REQUIRE_FALSE(relay.handed_over(0, first.attempt, trained(first), 1));
    relay.lost("a");
    relay.skip("a");
    REQUIRE(relay.take_turns().at(0).client == "b");
}

TEST_CASE("a lost host's groups go on elsewhere from the last hand-over, or anew where nobody has a copy",
          "[unit][relay]") {
    for (const auto copy : {RelayPlan::Copy::coordinator, RelayPlan::Copy::none}) {
        Relay relay(plan_of({{"a", "b"}}, RelayPlan::LostClient::skip, copy));
        auto turn = relay.take_turns().at(0);
        REQUIRE(relay.handed_over(0, turn.attempt, trained(turn), 3));
        turn = relay.take_turns().at(0);
        relay.lost("host-0");
        REQUIRE(relay.take_turns().empty());
        REQUIRE(relay.waits_for(0) == "host");
        relay.replace_host("host-0", "host-1");
        turn = relay.take_turns().at(0);
        REQUIRE(turn.host == "host-1");
        REQUIRE(turn.client == (copy == RelayPlan::Copy::none ? "a" : "b"));
        REQUIRE(turn.start == (copy == RelayPlan::Copy::none ? Handover{} : tour({"a"})));
    }
}

TEST_CASE("a client lost after its turn is left out when its group begins anew", "[unit][relay]") {
    Relay relay(plan_of({{"a", "b"}}, RelayPlan::LostClient::skip, RelayPlan::Copy::none));
    auto turn = relay.take_turns().at(0);
    REQUIRE(relay.handed_over(0, turn.attempt, trained(turn), 3));
    relay.lost("a");  // has counted: nothing to decide yet
    relay.lost("host-0");
    relay.replace_host("host-0", "host-1");
    turn = relay.take_turns().at(0);
    REQUIRE(turn.client == "b");
    REQUIRE(turn.start == Handover{});
    const auto decisions = relay.take_decisions();
    REQUIRE(std::ranges::count(decisions, RelayDecision::Kind::skipped, &RelayDecision::kind) == 1);
    REQUIRE(relay.handed_over(0, turn.attempt, trained(turn), 4));
    REQUIRE(relay.outcome() == Relay::Outcome::complete);
    REQUIRE(relay.results().at(0).clients == std::vector<std::string>{"b"});
}

TEST_CASE("groups whose clients are all gone give no result, and the round is over", "[unit][relay]") {
    Relay relay(plan_of({{"a"}, {"b", "c"}}));
    static_cast<void>(relay.take_turns());
    for (const char* client : {"a", "b", "c"}) {
        relay.lost(client);
    }
    REQUIRE(relay.take_turns().empty());
    REQUIRE(relay.outcome() == Relay::Outcome::complete);
    REQUIRE(relay.results().empty());
    REQUIRE(relay.possible() == 0);
}

TEST_CASE(
    "whatever is lost and comes back: each client counts at most once, nothing deadlocks, and the log alone "
    "gives the same end",
    "[property][relay]") {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        CAPTURE(seed);
        RandomStream random({.seed = seed, .purpose = "test-relay"});
        const std::size_t clients = 1 + random.below(9);
        GroupingInput input{.groups = static_cast<std::uint32_t>(1 + random.below(clients)), .seed = seed};
        for (std::size_t i = 0; i < clients; ++i) {
            input.clients.push_back({.name = fmt::format("c{}", i), .turn_seconds = random.uniform()});
        }
        const auto plan = plan_of(*make_groups("time", input),
                                  random.below(2) == 0 ? RelayPlan::LostClient::skip : RelayPlan::LostClient::wait,
                                  random.below(2) == 0 ? RelayPlan::Copy::coordinator : RelayPlan::Copy::none);
        Relay relay(plan);
        std::vector<RelayTurn> under_way;
        std::vector<RelayDecision> log;
        for (int event = 0; relay.outcome() == Relay::Outcome::open; ++event) {
            REQUIRE(event < 2000);
            const auto node = random.below(5) == 0 ? fmt::format("host-{}", random.below(2))
                                                   : fmt::format("c{}", random.below(clients));
            const auto what = event < 60 ? random.below(6) : 5;
            if (what == 0) {
                relay.lost(node);
            } else if (what == 1) {
                relay.present(node);
            } else if (what == 2 && node[0] == 'h') {
                relay.replace_host(node, node == "host-0" ? "host-1" : "host-0");
            } else if (event >= 60) {  // faults are healed
                for (std::size_t i = 0; i < clients; ++i) {
                    relay.present(fmt::format("c{}", i));
                }
                relay.present("host-0");
                relay.present("host-1");
            }
            for (const auto& turn : relay.take_turns()) {
                under_way.push_back(turn);
            }
            if (!under_way.empty()) {
                const auto pick = static_cast<std::ptrdiff_t>(random.below(under_way.size()));
                const RelayTurn turn = under_way[static_cast<std::size_t>(pick)];
                under_way.erase(under_way.begin() + pick);
                relay.handed_over(turn.group, turn.attempt, trained(turn), 1);
            }
            for (auto& decision : relay.take_decisions()) {
                log.push_back(std::move(decision));
            }
        }
        std::set<std::string> seen;
        for (const auto& result : relay.results()) {
            REQUIRE(result.segments == tour(result.clients));
            REQUIRE(result.examples == result.clients.size());
            for (const auto& client : result.clients) {
                REQUIRE(seen.insert(client).second);
            }
        }
        Relay restored(plan);
        for (const auto& decision : log) {
            restored.restore(decision);
        }
        REQUIRE(restored.outcome() == Relay::Outcome::complete);
        REQUIRE(restored.results().size() == relay.results().size());
        for (std::size_t i = 0; i < relay.results().size(); ++i) {
            REQUIRE(restored.results()[i].segments == relay.results()[i].segments);
            REQUIRE(restored.results()[i].clients == relay.results()[i].clients);
        }
    }
}

namespace {

/// Every client a group of its own, all on one host.
RelayPlan together(const std::vector<std::string>& clients) {
    RelayPlan plan{.lost_client = RelayPlan::LostClient::wait, .turns = RelayPlan::Turns::together};
    for (const auto& client : clients) {
        plan.groups.push_back({client});
        plan.hosts.push_back("host-0");
    }
    return plan;
}

std::vector<std::string> clients_of(const std::vector<RelayTurn>& turns) {
    std::vector<std::string> names;
    for (const auto& turn : turns) {
        names.push_back(turn.client);
    }
    return names;
}

}  // namespace

TEST_CASE("turns that are together begin when everybody is there, and end together", "[unit][relay]") {
    Relay relay(together({"a", "b", "c"}));
    relay.lost("b");
    REQUIRE(relay.take_turns().empty());
    relay.present("b");
    const auto turns = relay.take_turns();
    REQUIRE(clients_of(turns) == std::vector<std::string>{"a", "b", "c"});
    REQUIRE(relay.take_turns().empty());
    for (const auto& turn : turns) {
        REQUIRE(turn.start == Handover{});
        REQUIRE(relay.outcome() == Relay::Outcome::open);
        REQUIRE(relay.handed_over(turn.group, turn.attempt, trained(turn), 2));
    }
    REQUIRE(relay.outcome() == Relay::Outcome::complete);
    REQUIRE(relay.results().size() == 3);
}

TEST_CASE("who is lost in a turn together takes everybody back to the start, and is waited for or left out",
          "[unit][relay]") {
    Relay relay(together({"a", "b", "c"}));
    const auto first = relay.take_turns();
    SECTION("a client that comes back") {
        relay.lost("b");
        REQUIRE(relay.take_turns().empty());
        relay.present("b");
        REQUIRE(clients_of(relay.take_turns()) == std::vector<std::string>{"a", "b", "c"});
    }
    SECTION("a client that does not") {
        relay.lost("b");
        relay.skip("b");
        REQUIRE(clients_of(relay.take_turns()) == std::vector<std::string>{"a", "c"});
    }
    SECTION("the host") {
        relay.lost("host-0");
        REQUIRE(relay.take_turns().empty());
        relay.replace_host("host-0", "host-1");
        const auto turns = relay.take_turns();
        REQUIRE(clients_of(turns) == std::vector<std::string>{"a", "b", "c"});
        REQUIRE(turns.front().host == "host-1");
    }
    for (const auto& turn : first) {
        REQUIRE_FALSE(relay.handed_over(turn.group, turn.attempt, trained(turn), 2));
    }
    REQUIRE(relay.results().empty());
}

TEST_CASE("a log that ends in the middle of hand-overs that are together begins the round anew", "[unit][relay]") {
    Relay before(together({"a", "b"}));
    const auto turns = before.take_turns();
    for (const auto& turn : turns) {
        REQUIRE(before.handed_over(turn.group, turn.attempt, trained(turn), 2));
    }
    const auto log = before.take_decisions();
    REQUIRE(log.size() == 2);
    Relay half(together({"a", "b"}));
    half.restore(log[0]);
    half.mend();
    REQUIRE(half.take_decisions().at(0).kind == RelayDecision::Kind::restarted);
    REQUIRE(clients_of(half.take_turns()) == std::vector<std::string>{"a", "b"});
    Relay whole(together({"a", "b"}));
    whole.restore(log[0]);
    whole.restore(log[1]);
    whole.mend();
    REQUIRE(whole.take_decisions().empty());
    REQUIRE(whole.outcome() == Relay::Outcome::complete);
    whole.restart(1);  // a segment is lost: what the others came to rests on the same turn
    REQUIRE(whole.take_decisions().size() == 2);
    REQUIRE(clients_of(whole.take_turns()) == std::vector<std::string>{"a", "b"});
}

}  // namespace causeway
