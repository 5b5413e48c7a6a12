// Groupings: every client once, no group empty, the same answer every time.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "common/random.h"
#include "split/grouping.h"

namespace causeway {
namespace {

GroupingInput some(std::size_t clients, std::uint32_t groups, std::uint64_t seed) {
    RandomStream random({.seed = seed, .purpose = "test-groups"});
    GroupingInput input{.groups = groups, .seed = seed, .round = 3};
    for (std::size_t i = 0; i < clients; ++i) {
        input.clients.push_back({.name = fmt::format("client-{:03}", i),
                                 .turn_seconds = 1 + 9 * random.uniform(),
                                 .labels = {random.below(50), random.below(50), random.below(50)},
                                 .link = fmt::format("uplink-{}", random.below(clients))});
    }
    for (std::uint32_t group = 0; group < groups; ++group) {
        input.fixed.emplace_back();
    }
    for (std::size_t i = 0; i < clients; ++i) {
        input.fixed[i % groups].push_back(input.clients[i].name);
    }
    return input;
}

double slowest(const GroupingInput& input, const Groups& groups) {
    std::map<std::string, double> seconds;
    for (const auto& client : input.clients) {
        seconds[client.name] = client.turn_seconds;
    }
    double most = 0;
    for (const auto& group : groups) {
        double sum = 0;
        for (const auto& name : group) {
            sum += seconds.at(name);
        }
        most = std::max(most, sum);
    }
    return most;
}

}  // namespace

TEST_CASE("every grouping puts every client into exactly one group, and twice the same", "[property][grouping]") {
    for (const Grouping& grouping : groupings()) {
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            const std::size_t clients = 1 + seed % 13;
            const auto groups = static_cast<std::uint32_t>(1 + seed * 7 % clients);
            CAPTURE(grouping.name, seed, clients, groups);
            const GroupingInput input = some(clients, groups, seed);
            const auto made = make_groups(grouping.name, input);
            REQUIRE(made);
            REQUIRE(*made == *make_groups(grouping.name, input));
            std::multiset<std::string> names;
            for (const auto& group : *made) {
                REQUIRE((!group.empty() || grouping.name == "link"));
                names.insert(group.begin(), group.end());
            }
            REQUIRE(names.size() == clients);
            REQUIRE(std::set<std::string>(names.begin(), names.end()).size() == clients);
        }
    }
}

TEST_CASE("grouping by time is within Graham's bound of the best, and beats the file's order", "[paper][grouping]") {
    // 7, 6, 5, 4, 3 in two groups: 7 + 4 + 3 = 14 and 6 + 5 = 11 by the rule; 13 is the best.
    GroupingInput input{.groups = 2};
    for (const double seconds : {3.0, 4.0, 5.0, 6.0, 7.0}) {
        input.clients.push_back({.name = fmt::format("c{}", seconds), .turn_seconds = seconds});
    }
    const auto made = make_groups("time", input);
    REQUIRE(*made == Groups{{"c7", "c4", "c3"}, {"c6", "c5"}});
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        const auto random = some(12, 3, seed);
        double total = 0, longest = 0;
        for (const auto& client : random.clients) {
            total += client.turn_seconds;
            longest = std::max(longest, client.turn_seconds);
        }
        const double best_possible = std::max(total / 3, longest);
        REQUIRE(slowest(random, *make_groups("time", random)) <= best_possible * 4 / 3 + longest / 3);
    }
}

TEST_CASE("clients that take no time are spread all the same", "[unit][grouping]") {
    GroupingInput input{.groups = 3};
    for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
        input.clients.push_back({.name = name});
    }
    const auto groups = *make_groups("time", input);
    for (const auto& group : groups) {
        REQUIRE(group.size() == 2);
    }
}

TEST_CASE("mixing labels puts clients of one class each into groups that have all classes", "[unit][grouping]") {
    GroupingInput input{.groups = 2};
    for (int i = 0; i < 6; ++i) {
        GroupingClient client{.name = fmt::format("c{}", i), .turn_seconds = 1, .labels = {0, 0, 0}};
        client.labels[static_cast<std::size_t>(i) % 3] = 10;
        input.clients.push_back(client);
    }
    const auto groups = *make_groups("labels", input);
    for (const auto& group : groups) {
        std::set<int> classes;
        for (const auto& name : group) {
            classes.insert((name[1] - '0') % 3);
        }
        REQUIRE(classes.size() == 3);
    }
}

TEST_CASE("clients behind one uplink take turns in one group", "[unit][grouping]") {
    GroupingInput input{.groups = 2};
    for (const char* name : {"a", "b", "c", "d"}) {
        input.clients.push_back({.name = name, .turn_seconds = 1, .link = name < std::string("c") ? "dsl" : ""});
    }
    const auto groups = *make_groups("link", input);
    REQUIRE(std::ranges::any_of(groups, [](const auto& group) {
        return std::ranges::count(group, "a") == 1 && std::ranges::count(group, "b") == 1;
    }));
}

TEST_CASE("groups that cannot be made say why", "[unit][grouping]") {
    const auto code = [](const char* name, const GroupingInput& input) {
        const auto made = make_groups(name, input);
        return made ? std::string() : made.error().code;
    };
    REQUIRE(code("time", {}) == "bad_groups");
    REQUIRE(code("time", some(2, 2, 1)).empty());
    GroupingInput input = some(4, 2, 1);
    input.groups = 5;
    REQUIRE(code("random", input) == "bad_groups");
    REQUIRE(code("tiem", input) == "unknown_grouping");
    REQUIRE_THAT(make_groups("tiem", input).error().message, Catch::Contains("\"time\""));
    input = some(4, 2, 1);
    input.fixed[0].push_back(input.fixed[1][0]);
    REQUIRE_THAT(make_groups("fixed", input).error().message, Catch::Contains("twice"));
    input.fixed = {{input.clients[0].name}};
    REQUIRE_THAT(make_groups("fixed", input).error().message, Catch::Contains("in no group"));
}

}  // namespace causeway
