// A coordinator that stands still, at every moment of a run and for longer than each of its deadlines: nobody is late
// for it, and the run has the bits of the undisturbed one.
#include <algorithm>
#include <functional>

#include <catch2/catch.hpp>

#include "coordinator/decisions.h"
#include "points.h"
#include "scripted_work.h"
#include "simulation/faults.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

/// All that a member can be late for is short, and what its absence costs is everything.
constexpr const char* strict_sync =
    "quorum = \"100%\"\nmin_clients = 3\nstraggler_deadline = \"6s\"\nrejoin = \"0s\"\nstart_timeout = \"4s\"";

struct StalledKind {
    const char* name;
    std::string file;
    std::size_t hosts = 0;
};

std::vector<StalledKind> stalled_kinds() {
    const std::string sgd = "optimizer = { kind = \"sgd\", learning_rate = 0.1, momentum = 0.9 }\nbatch = 8";
    const auto with = [&](const std::string& more, const std::string& regime = "preset = \"fedavg\"") {
        return points_experiment(2, sgd, std::string(strict_sync) + more, regime);
    };
    auto summed = with("");
    const std::string shape = "shape = [5]\n";
    summed.replace(summed.find(shape), shape.size(), shape + "normalise = \"federated\"\n");
    return {{"whole models, evaluated here", with("")},
            {"evaluated by clients, who end it", with("\n[evaluation]\nwhere = \"both\"\npatience = 1")},
            {"statistics first", summed},
            {"relay turns", with("", "preset = \"gsfl\"\ncut = \"gelu\"\ngroups = 2"), 1},
            {"turns together", with("", "preset = \"splitfed-v2\"\ncut = \"gelu\""), 1}};
}

/// What a run has come to, and how long it took.
struct StalledOutcome {
    std::string end;
    std::vector<Digest> models;
    std::vector<std::string> dropped;
    std::vector<std::string> broken;
    Instant over{};
};

using DisturbRun = std::function<void(World&, Instant begun)>;

StalledOutcome run_stalled(const StalledKind& kind, const DisturbRun& disturb) {
    RealCast cast(3, points(20, 99), kind.hosts);
    auto options = cast.world();
    for (auto& client : options.clients) {
        client.link = both_ways(20ms, 2e4);
        client.slowness = 2000;
    }
    World world(std::move(options));
    world.start();
    world.run_for(1s);
    world.submit(kind.file);
    disturb(world, world.now());
    StalledOutcome outcome;
    (void)world.run_until([&] { return world.over(1); }, 3600s);
    outcome.over = world.now();
    world.run_for(60s);
    outcome.end = world.state(1) + world.reason(1);
    const auto log = world.log(1);
    for (const auto& commit : log.commits) {
        outcome.models.push_back(commit.model);
    }
    for (const auto& decision : log.decisions) {
        if (decision.kind == decisions::dropped) {
            outcome.dropped.push_back(decision.detail.dump());
        }
    }
    outcome.broken = world.broken_rules();
    return outcome;
}

void require_undisturbed(const StalledOutcome& outcome, const StalledOutcome& undisturbed) {
    REQUIRE(outcome.broken.empty());
    REQUIRE(outcome.dropped.empty());
    REQUIRE(outcome.end == "succeeded");
    REQUIRE(outcome.models == undisturbed.models);
}

}  // namespace

TEST_CASE("a coordinator that stands still, whenever and however long, costs nobody a place and no run a bit",
          "[sim][faults][stall]") {
    for (const auto& kind : stalled_kinds()) {
        INFO(kind.name);
        const auto undisturbed = run_stalled(kind, [](World&, Instant) {});
        REQUIRE(undisturbed.end == "succeeded");
        constexpr int moments = 24;
        for (const Duration how_long : {5s, 14s, 100s}) {
            for (int i = 0; i < moments; ++i) {
                const auto wait = (undisturbed.over - 1s) * i / moments;
                INFO("stands still for " << seconds(how_long) << " s, " << seconds(wait) << " s after the submit");
                require_undisturbed(run_stalled(kind,
                                 [&](World& world, Instant begun) {
                                     world.at(begun + wait, [&world, how_long] {
                                         world.stop_process(World::coordinator_process, how_long);
                                     });
                                 }),
                             undisturbed);
            }
        }
    }
}

TEST_CASE("seeds of stalls alone: the undisturbed bits", "[sim][faults][stall]") {
    const auto all = stalled_kinds();
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const auto& kind = all[seed % all.size()];
        INFO(kind.name << ", seed " << seed);
        const auto undisturbed = run_stalled(kind, [](World&, Instant) {});
        require_undisturbed(run_stalled(kind,
                         [&](World& world, Instant) {
                             plan_faults(world, {.kinds = {Fault::coordinator_stalls}, .seed = seed, .count = 6});
                         }),
                     undisturbed);
    }
}

TEST_CASE("a machine whose clock jumps, as one that was suspended, is one that stood still", "[sim][stall]") {
    for (const auto& kind : stalled_kinds()) {
        INFO(kind.name);
        const auto undisturbed = run_stalled(kind, [](World&, Instant) {});
        for (const Duration when : {Duration(100ms), Duration(700ms), Duration(2s), Duration(4s)}) {
            require_undisturbed(run_stalled(kind,
                             [&](World& world, Instant begun) {
                                 world.at(begun + when,
                                          [&world] { world.jump_clock(World::coordinator_process, 3600s); });
                             }),
                         undisturbed);
        }
    }
}

TEST_CASE("a node that stood still does not hold that against the coordinator", "[sim][stall]") {
    ScriptedWorld scripted(2, Transcript::Keep::everything);
    scripted.world->start();
    scripted.world->stop_process(0, 9s);  // between its hello and the welcome; the connection outlives it
    scripted.world->run_for(20s);
    CHECK(scripted.world->client(0).session()->online());
    for (const auto* lost : {"is silent", "no welcome"}) {
        CHECK(scripted.world->transcript().find(lost) == std::string::npos);
    }
}

TEST_CASE("who is late for reasons of its own is late all the same, and who does not come back is given up",
          "[sim][stall]") {
    SECTION("a slow client, after a stall in which it went on") {
        ScriptedWorld scripted(2);
        scripted.clients[1]->training_time = [](const Assign&) { return 60s; };
        scripted.submit(experiment_text(1, "quorum = 1\nmin_clients = 2\nstraggler_deadline = \"10s\""));
        scripted.world->run_for(2s);
        scripted.world->stop_process(World::coordinator_process, 5s);
        REQUIRE(scripted.ends_within(60s));
        CHECK(scripted.world->state(1) == "succeeded");
        const auto log = scripted.world->log(1);
        CHECK(std::ranges::count_if(log.decisions, [](const auto& decision) {
                  return decision.kind == decisions::dropped &&
                         decision.detail["code"].text() == "straggler_deadline";
              }) == 1);
    }
    SECTION("one that died while the coordinator stood still") {
        ScriptedWorld scripted(2);
        scripted.submit(experiment_text(1, "quorum = 1\nmin_clients = 2\nrejoin = \"0s\""));
        scripted.world->run_for(500ms);
        scripted.world->stop_process(World::coordinator_process, 20s);
        scripted.world->run_for(1s);
        scripted.world->crash_client(1, 3600s);
        REQUIRE(scripted.ends_within(120s));
        CHECK(scripted.world->state(1) == "succeeded");
    }
}

}  // namespace causeway::simulation
