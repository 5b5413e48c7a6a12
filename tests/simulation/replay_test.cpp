// A run and its replay from the decision log: equal bits, and a log that says otherwise is refused or shown.
#include <catch2/catch.hpp>

#include "coordinator/decisions.h"
#include "points.h"
#include "scripted_work.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr const char* keeps_momentum = R"(optimizer = { kind = "sgd", learning_rate = 0.1, momentum = 0.9 }
batch = 8
local_epochs = 2
optimizer_state = "keep")";

/// A real run of 4 clients in which one is dropped from a round and another joins late.
RunLog disturbed_run() {
    RealCast cast(4);
    World world(cast.world());
    world.start();
    REQUIRE(world.run_until([&] { return world.coordinator().machine()->members().members().size() == 4; }, 60s));
    world.submit(points_experiment(6, keeps_momentum, "quorum = 2\nrejoin = \"0s\""));
    REQUIRE(world.run_until([&] { return world.rounds(1) == 2; }, 60s));
    world.crash_client(1, 100ms);
    REQUIRE(world.run_until([&] { return world.over(1); }, 600s));
    REQUIRE(world.state(1) == "succeeded");
    REQUIRE(world.broken_rules().empty());
    return world.coordinator().store().log(1);
}

Result<std::vector<ReplayedRound>> replayed(const RunLog& log) {
    RealCast cast(4);
    return replay(log, cast.coordinator, [&](const std::string& node) { return cast.find(node); });
}

bool all_same(const std::vector<ReplayedRound>& rounds) {
    return std::all_of(rounds.begin(), rounds.end(), [](const auto& round) { return round.same(); });
}

std::string code_of(const RunLog& log) {
    const auto status = check_log(log);
    return status ? "" : status.error().code;
}

}  // namespace

TEST_CASE("a replay from the decision log reaches every round's digest, without those who were left out",
          "[replay][sim]") {
    const auto log = disturbed_run();
    REQUIRE(log.commits.size() == 7);
    REQUIRE(log.commits[3].participants.size() == 3);
    const auto rounds = replayed(log);
    REQUIRE(rounds);
    REQUIRE(rounds->size() == 7);
    CHECK(all_same(*rounds));
}

TEST_CASE("a replay names the first round and the node whose bits differ", "[replay][sim]") {
    auto log = disturbed_run();
    const auto node = log.commits[2].participants[1].first;
    log.commits[2].participants[1].second = sha256("another update");
    const auto rounds = replayed(log);
    REQUIRE(rounds);
    CHECK((*rounds)[1].same());
    CHECK((*rounds)[2].differs == std::vector{node});
    log.commits[3].participants.pop_back();  // a decision that was not made: other bits from there on
    const auto other = replayed(log);
    REQUIRE(other);
    CHECK((*other)[3].differs.empty());
    CHECK_FALSE((*other)[3].same());
    CHECK_FALSE((*other)[6].same());
}

TEST_CASE("a log that no coordinator writes is refused", "[replay][sim]") {
    const auto log = disturbed_run();
    CHECK(code_of(log).empty());
    auto bad = log;
    bad.commits.erase(bad.commits.begin() + 2);
    CHECK(code_of(bad) == "bad_log");
    bad = log;
    bad.commits[1].participants.resize(1);
    CHECK(code_of(bad) == "bad_log");
    bad = log;
    bad.commits[1].participants[0].first = "aa-stranger";
    CHECK(code_of(bad) == "bad_log");
    bad = log;
    bad.commits[1].participants.push_back(bad.commits[1].participants.back());
    CHECK(code_of(bad) == "bad_log");
    bad = log;
    bad.decisions.push_back({1, 4, decisions::dropped, decisions::dropped_detail("client-0", 1, "silent", "")});
    CHECK(code_of(bad) == "bad_log");
    bad = log;
    bad.decisions.push_back({1, 4, decisions::early_stop, decisions::early_stop_detail("loss", 1, 0.5, 2)});
    CHECK(code_of(bad) == "bad_log");
    bad = log;
    bad.saved.file = "rounds = many";
    CHECK_FALSE(check_log(bad));
}

TEST_CASE("a replay without a participant's data says whose are missing", "[replay][sim]") {
    const auto log = disturbed_run();
    RealCast cast(2);
    const auto rounds = replay(log, cast.coordinator, [&](const std::string& node) { return cast.find(node); });
    REQUIRE_FALSE(rounds);
    CHECK(rounds.error().code == "unknown_node");
    CHECK_THAT(rounds.error().message, Catch::Contains("client-2"));
}

TEST_CASE("a run that ended early replays to its end, and a replay stops when it is told to", "[replay][sim]") {
    ScriptedWorld scripted(2);
    scripted.work.accuracy = [](std::uint32_t round) { return 1.0 / round; };
    scripted.submit(experiment_text(9, "min_clients = 2\n[evaluation]\npatience = 2"));
    REQUIRE(scripted.ends_within(600s));
    const auto log = scripted.world->coordinator().store().log(1);
    REQUIRE(log.commits.size() < 9);
    for (const std::uint32_t until : {2u, 99u}) {
        ScriptedWorld again(2);
        const auto rounds = replay(
            log, again.work,
            [&](const std::string& node) -> Result<ClientWork*> { return again.clients[node == "a" ? 0 : 1].get(); },
            [&](const ReplayedRound& round) { return round.round < until; });
        REQUIRE(rounds);
        CHECK(rounds->size() == std::min<std::size_t>(until + 1, log.commits.size()));
        CHECK(all_same(*rounds));
    }
}

}  // namespace causeway::simulation
