// Who can never be in time costs the others one deadline, not one a round; who can be again is a member like others.
#include <algorithm>

#include <catch2/catch.hpp>

#include "coordinator/decisions.h"
#include "scripted_work.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr const char* late_sync = "quorum = \"50%\"\nmin_clients = 3\nstraggler_deadline = \"4s\"";
constexpr std::uint32_t late_rounds = 20;

/// Rounds in which the node was dropped with that code.
std::vector<std::uint32_t> rounds_dropped(const ScriptedWorld& scripted, const std::string& node,
                                          const std::string& code) {
    std::vector<std::uint32_t> found;
    for (const auto& decision : scripted.world->log(1).decisions) {
        if (decision.kind == decisions::dropped && decision.detail["node"].text() == node &&
            decision.detail["code"].text() == code) {
            found.push_back(decision.round);
        }
    }
    return found;
}

std::vector<std::uint32_t> rounds_counted(const ScriptedWorld& scripted, const std::string& node) {
    std::vector<std::uint32_t> found;
    for (const auto& commit : scripted.world->log(1).commits) {
        if (std::ranges::any_of(commit.participants, [&](const auto& one) { return one.first == node; })) {
            found.push_back(commit.round);
        }
    }
    return found;
}

/// How long a run takes, from the submission on.
Duration play_late(ScriptedWorld& scripted, const std::function<void()>& disturb = [] {}) {
    scripted.submit(experiment_text(late_rounds, late_sync));
    const auto begun = scripted.world->now();
    disturb();
    REQUIRE(scripted.ends_within(3600s));
    INFO(scripted.world->reason(1));
    REQUIRE(scripted.world->state(1) == "succeeded");
    for (const auto& rule : scripted.world->broken_rules()) {
        UNSCOPED_INFO(rule);
    }
    REQUIRE(scripted.world->broken_rules().empty());
    REQUIRE(scripted.work.mistakes.empty());
    return scripted.world->now() - begun;
}

}  // namespace

TEST_CASE("a client that can never be in time costs the others one deadline", "[sim][late]") {
    ScriptedWorld plain(2);
    plain.submit(experiment_text(late_rounds, "quorum = \"50%\"\nmin_clients = 2"));
    const auto begun = plain.world->now();
    REQUIRE(plain.ends_within(3600s));
    const auto alone = plain.world->now() - begun;

    SECTION("its training takes longer") {
        ScriptedWorld scripted(3);
        scripted.clients[2]->training_time = [](const Assign&) { return 60s; };
        CHECK(play_late(scripted) < alone + 5s);
        CHECK(rounds_dropped(scripted, "c", "straggler_deadline") == std::vector<std::uint32_t>{1});
        CHECK(rounds_dropped(scripted, "c", "not_waited_for") == std::vector<std::uint32_t>{3, 6, 11, 20});
    }
    SECTION("its model takes longer to come") {
        ScriptedWorld scripted(3);
        const auto took = play_late(scripted, [&] { scripted.world->slow_link(2, 10'000, 3600s); });
        CHECK(took < alone + 5s);
        CHECK(rounds_dropped(scripted, "c", "straggler_deadline").size() == 1);
    }
    SECTION("the coordinator is killed meanwhile, and remembers") {
        ScriptedWorld scripted(3);
        scripted.clients[2]->training_time = [](const Assign&) { return 60s; };
        const auto took = play_late(scripted, [&] {
            for (const auto when : {7s, 13s}) {
                scripted.world->at(scripted.world->now() + when, [&] { scripted.world->crash_coordinator(100ms); });
            }
        });
        CHECK(took < alone + 45s);
        CHECK(rounds_dropped(scripted, "c", "straggler_deadline").size() == 1);
    }
}

TEST_CASE("one that is in time again is waited for again", "[sim][late]") {
    ScriptedWorld scripted(3);
    scripted.clients[2]->training_time = [](const Assign& assign) { return assign.lease.round == 1 ? 60s : 500ms; };
    play_late(scripted);
    const auto rounds_of_c = rounds_counted(scripted, "c");
    CHECK(rounds_of_c.size() == late_rounds - 2);  // all but the one it missed and the one it rested for
    CHECK(rounds_of_c.front() == 3);
}

TEST_CASE("where its update is needed it is waited for, however late it was", "[sim][late]") {
    ScriptedWorld scripted(2);
    scripted.clients[1]->training_time = [](const Assign& assign) { return assign.lease.round == 1 ? 60s : 3s; };
    scripted.submit(experiment_text(3, "quorum = 1\nmin_clients = 2\nstraggler_deadline = \"4s\""));
    REQUIRE(scripted.ends_within(3600s));
    CHECK(scripted.world->state(1) == "succeeded");
    ScriptedWorld needed(2);
    needed.clients[1]->training_time = [](const Assign&) { return 60s; };
    needed.submit(experiment_text(3, "quorum = 2\nmin_clients = 2\nstraggler_deadline = \"4s\""));
    REQUIRE(needed.ends_within(3600s));
    CHECK_THAT(needed.world->reason(1), Catch::StartsWith("quorum_lost") && Catch::Contains("straggler_deadline"));
}

}  // namespace causeway::simulation
