// Who is told whom it may talk to, and when.
#include <catch2/catch.hpp>

#include "bench.h"
#include "coordinator/rosters.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;

struct RosterBench {
    RosterBench() {
        CoordinatorEffects ignored;
        for (const auto* client : {"a", "b"}) {
            come(client, "client");
        }
        come("h1", "host");
    }
    void come(const std::string& node, const std::string& role) {
        CoordinatorEffects ignored;
        Hello hello;
        hello.addresses = {node + ":7"};
        sessions[node] = next++;
        members.open(SessionOpened{sessions[node], node, role, hello, sha256(node)}, ignored);
    }
    /// What is sent when these pairs are to talk; something else was to be sent already.
    CoordinatorEffects keep(Instant now, const std::vector<StreamPair>& pairs) {
        std::vector<Rosters::Pair> all;
        for (const auto& pair : pairs) {
            all.push_back({9, pair});
        }
        CoordinatorEffects effects;
        effects.send.push_back({sessions["a"], Assign{}});
        look_again = rosters.keep(now, all, members, effects);
        return effects;
    }
    Membership members{{}};
    Rosters rosters;
    Instant look_again = never;
    SessionId next = 1;
    std::map<std::string, SessionId> sessions;
};

}  // namespace

TEST_CASE("a roster names the other node of each pair, and is sent before the assignment", "[rosters]") {
    RosterBench bench;
    const auto effects = bench.keep(1s, {{"a", "h1"}});
    REQUIRE(effects.send.size() == 3);
    CHECK(std::holds_alternative<Assign>(effects.send.back().message));
    const auto* client = sent<Roster>(effects, bench.sessions["a"]);
    const auto* host = sent<Roster>(effects, bench.sessions["h1"]);
    REQUIRE((client != nullptr && host != nullptr));
    CHECK(client->entries == std::vector<RosterEntry>{{"h1", "host", sha256(std::string("h1")), 9, {"h1:7"}, 60000}});
    CHECK(host->entries == std::vector<RosterEntry>{{"a", "client", sha256(std::string("a")), 9, {}, 60000}});
    CHECK(sent<Roster>(effects, bench.sessions["b"]) == nullptr);  // b is in no pair
}

TEST_CASE("a roster is sent again only when it changes, or is 20 s old", "[rosters]") {
    RosterBench bench;
    bench.keep(1s, {{"a", "h1"}});
    CHECK(bench.look_again == 21s);
    CHECK(bench.keep(20s, {{"a", "h1"}}).send.size() == 1);
    CHECK(bench.keep(21s, {{"a", "h1"}}).send.size() == 3);
    CHECK(bench.look_again == 41s);
    const auto changed = bench.keep(22s, {{"a", "h1"}, {"b", "h1"}});
    CHECK(sent<Roster>(changed, bench.sessions["a"]) == nullptr);
    CHECK(sent<Roster>(changed, bench.sessions["b"]) != nullptr);
    REQUIRE(sent<Roster>(changed, bench.sessions["h1"]) != nullptr);
    CHECK(sent<Roster>(changed, bench.sessions["h1"])->entries.size() == 2);
}

TEST_CASE("whom nobody may talk to any more hears that once", "[rosters]") {
    RosterBench bench;
    bench.keep(1s, {{"a", "h1"}});
    const auto after = bench.keep(2s, {});
    REQUIRE(sent<Roster>(after, bench.sessions["a"]) != nullptr);
    CHECK(sent<Roster>(after, bench.sessions["a"])->entries.empty());
    CHECK(sent<Roster>(after, bench.sessions["h1"]) != nullptr);
    CHECK(bench.look_again == never);
    CHECK(bench.keep(100s, {}).send.size() == 1);
}

TEST_CASE("a new session of a node is told anew, a node that is gone is not", "[rosters]") {
    RosterBench bench;
    bench.keep(1s, {{"a", "h1"}});
    bench.come("a", "client");
    const auto again = bench.keep(2s, {{"a", "h1"}});
    CHECK(sent<Roster>(again, bench.sessions["a"]) != nullptr);
    CHECK(sent<Roster>(again, bench.sessions["h1"]) == nullptr);
    bench.members.close(0s, bench.sessions["h1"]);
    const auto alone = bench.keep(3s, {{"a", "h1"}});
    REQUIRE(sent<Roster>(alone, bench.sessions["a"]) != nullptr);
    CHECK(sent<Roster>(alone, bench.sessions["a"])->entries.empty());  // nobody is there to talk to
    bench.come("h1", "host");
    CHECK(sent<Roster>(bench.keep(4s, {{"a", "h1"}}), bench.sessions["h1"]) != nullptr);
}

}  // namespace causeway
