// Seeds of failures: links cut and stalled, clients and the coordinator killed between any two effects.
//
// Whatever happens, no rule of simulation/invariants.h breaks and each experiment ends once the failures stop; where
// nothing was decided by time, the model is the undisturbed one. A failing seed prints the command that repeats it:
// CAUSEWAY_SEED=N test_simulation "[faults]"
#include <cstdlib>

#include <catch2/catch.hpp>

#include "common/random.h"
#include "scripted_work.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr Duration fault_time = 40s;
// An update takes 1.3 s on it, as long as training: failures meet transfers too.
constexpr LinkOptions slow_link = both_ways(20ms, 300'000);

struct Seeds {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

Seeds seeds(std::uint64_t count) {
    const char* one = std::getenv("CAUSEWAY_SEED");
    return one != nullptr ? Seeds{std::strtoull(one, nullptr, 10), 1} : Seeds{0, count};
}

Duration some_time(RandomStream& random, Duration longest) {
    return Duration(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(longest.count()))));
}

/// Failures at random instants; the longest absence is given, so that a test can keep it below or above `rejoin`.
void plan_faults(World& world, RandomStream& random, std::uint64_t count, Duration longest_absence) {
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto client = random.below(world.client_count());
        const auto kind = random.below(6);
        const auto absence = some_time(random, longest_absence);
        const auto effects = static_cast<std::uint32_t>(random.below(40));
        world.at(world.now() + some_time(random, fault_time), [&world, client, kind, absence, effects] {
            switch (kind) {
                case 0:
                    return world.cut(client);
                case 1:
                    return world.stall(client, absence);
                case 2:
                    return world.crash_client(client, absence);
                case 3:
                    return world.crash_client_after(client, effects, absence);
                case 4:
                    return world.crash_coordinator(absence);
                default:
                    return world.crash_coordinator_after(effects, absence);
            }
        });
    }
}

void give_random_training_times(ScriptedWorld& scripted, std::uint64_t seed) {
    for (std::size_t i = 0; i < scripted.clients.size(); ++i) {
        scripted.clients[i]->training_time = [seed, i](const Assign& assign) {
            RandomStream random({.seed = seed, .purpose = "train", .round = assign.lease.round, .node = i});
            return Duration(some_time(random, 6s));
        };
    }
}

void require_rules(const ScriptedWorld& scripted) {
    for (const auto& rule : scripted.world->broken_rules()) {
        UNSCOPED_INFO(rule);
    }
    REQUIRE(scripted.world->broken_rules().empty());
    REQUIRE(scripted.work.mistakes.empty());
}

std::string repeat(std::uint64_t seed) {
    return "CAUSEWAY_SEED=" + std::to_string(seed) + " test_simulation [faults]";
}

Digest run_undisturbed(const std::string& file) {
    ScriptedWorld scripted(3);
    scripted.submit(file);
    REQUIRE(scripted.ends_within(600s));
    return scripted.world->last_model(1);
}

}  // namespace

TEST_CASE("failures that nobody is dropped for do not change the model", "[faults]") {
    const auto file = experiment_text(5, "min_clients = 3\nquorum = \"100%\"\nrejoin = \"10m\"");
    const auto expected = run_undisturbed(file);
    const auto range = seeds(50);
    for (auto seed = range.first; seed < range.first + range.count; ++seed) {
        INFO(repeat(seed));
        ScriptedWorld scripted(3, Transcript::Keep::nothing, slow_link);
        give_random_training_times(scripted, seed);
        scripted.submit(file);
        RandomStream random({.seed = seed, .purpose = "faults"});
        plan_faults(*scripted.world, random, 1 + random.below(8), 8s);
        REQUIRE(scripted.ends_within(300s));
        scripted.world->run_for(60s);
        require_rules(scripted);
        REQUIRE(scripted.world->state(1) == "succeeded");
        REQUIRE(scripted.world->last_model(1) == expected);
        for (const auto& client : scripted.clients) {
            REQUIRE(client->held().empty());
        }
    }
}

TEST_CASE("whatever fails, every experiment ends and no rule is broken", "[faults]") {
    const auto range = seeds(50);
    for (auto seed = range.first; seed < range.first + range.count; ++seed) {
        INFO(repeat(seed));
        ScriptedWorld scripted(4, Transcript::Keep::nothing, slow_link);
        give_random_training_times(scripted, seed);
        RandomStream random({.seed = seed, .purpose = "faults"});
        const char* syncs[] = {"quorum = 1\nrejoin = \"3s\"\nstraggler_deadline = \"5s\"",
                               "quorum = \"50%\"\nrejoin = \"0s\"\nmin_clients = 2\nstart_timeout = \"20s\"",
                               "quorum = 3\nrejoin = \"6s\"\nmin_clients = 3\nstart_timeout = \"30s\"\ncohort = 3"};
        scripted.submit(experiment_text(8, syncs[random.below(3)]));
        scripted.work.failures = {{"finish_round", static_cast<int>(random.below(3))}};
        plan_faults(*scripted.world, random, 1 + random.below(12), 15s);
        REQUIRE(scripted.ends_within(600s));
        scripted.world->run_for(60s);
        require_rules(scripted);
    }
}

TEST_CASE("a cancelled experiment stays cancelled, everywhere", "[faults]") {
    const auto range = seeds(1000);
    for (auto seed = range.first; seed < range.first + range.count; ++seed) {
        INFO(repeat(seed));
        ScriptedWorld scripted(2);
        give_random_training_times(scripted, seed);
        RandomStream random({.seed = seed, .purpose = "cancel"});
        scripted.world->start();
        scripted.world->run_for(100ms);
        scripted.world->submit(experiment_text(3, "min_clients = 2"));
        if (random.below(3) == 0) {
            plan_faults(*scripted.world, random, 2, 2s);
        }
        scripted.world->run_for(some_time(random, 4s));
        if (scripted.world->over(1) || !scripted.world->coordinator().up()) {
            continue;
        }
        scripted.world->request("experiment.cancel", Json::object().set("experiment", 1));
        scripted.world->run_for(60s);
        require_rules(scripted);
        for (std::size_t i = 0; i < 2; ++i) {
            const auto* session = scripted.world->client(i).session();
            REQUIRE(session != nullptr);
            // A crash between the request and its persist undoes the cancellation; otherwise nobody works on it.
            REQUIRE((scripted.world->state(1) != "cancelled" || !session->working()));
            REQUIRE((scripted.world->state(1) != "cancelled" || session->held().empty()));
        }
        REQUIRE(scripted.world->over(1));
    }
}

TEST_CASE("one seed is one history", "[faults]") {
    std::string first;
    for (int run = 0; run < 2; ++run) {
        ScriptedWorld scripted(3, Transcript::Keep::everything);
        give_random_training_times(scripted, 5);
        scripted.submit(experiment_text(4, "min_clients = 3\nrejoin = \"10m\""));
        RandomStream random({.seed = 5, .purpose = "faults"});
        plan_faults(*scripted.world, random, 8, 8s);
        REQUIRE(scripted.ends_within(300s));
        if (run == 0) {
            first = scripted.world->transcript();
        } else {
            REQUIRE(scripted.world->transcript() == first);
        }
    }
}

}  // namespace causeway::simulation
