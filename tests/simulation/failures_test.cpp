// What each kind of failure does to a federation, one at a time; the seeds mix them.
#include <algorithm>
#include <array>

#include <catch2/catch.hpp>

#include "scripted_work.h"
#include "simulation/faults.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

bool says(const ScriptedWorld& scripted, const std::string& text) {
    return scripted.world->transcript().find(text) != std::string::npos;
}

void require_success(ScriptedWorld& scripted) {
    REQUIRE(scripted.ends_within(3600s));
    scripted.world->run_for(60s);
    INFO(scripted.world->reason(1));
    REQUIRE(scripted.world->broken_rules().empty());
    REQUIRE(scripted.work.mistakes.empty());
    REQUIRE(scripted.world->state(1) == "succeeded");
}

constexpr const char* patient_text = "min_clients = 2\nquorum = \"100%\"\nrejoin = \"10m\"";

/// Clients that leave and come back, each once, in an order; two of three must be there.
struct Absence {
    std::array<int, 6> order{};  // client of each step: its first is leaving, its second coming back
    bool crashes = false;
    std::string rejoin;
};

void play_failure(ScriptedWorld& scripted, const Absence& absence) {
    auto& world = *scripted.world;
    std::array<Duration, 3> left{};
    std::array<Duration, 3> away{};
    for (std::size_t step = 0; step < absence.order.size(); ++step) {
        const auto client = static_cast<std::size_t>(absence.order[step]);
        const Duration when = 1500ms * static_cast<std::int64_t>(step + 1);
        (left[client] == Duration::zero() ? left[client] : away[client]) =
            left[client] == Duration::zero() ? when : when - left[client];
    }
    for (std::size_t client = 0; client < 3; ++client) {
        world.at(world.now() + left[client], [&world, client, how_long = away[client], crashes = absence.crashes] {
            crashes ? world.crash_client(client, how_long) : world.stall(client, how_long);
        });
    }
}

}  // namespace

TEST_CASE("below the quorum and filled up again, gracefully or not, in every order: no deadlock", "[sim][faults]") {
    std::array<int, 6> order{0, 0, 1, 1, 2, 2};
    int histories = 0;
    do {
        for (const bool crashes : {false, true}) {
            for (const auto* rejoin : {"0s", "10m"}) {
                ScriptedWorld scripted(3);
                scripted.submit(experiment_text(6, std::string("quorum = 2\nmin_clients = 2\nrejoin = \"") + rejoin +
                                                       "\"\n[evaluation]\nwhere = \"none\""));
                play_failure(scripted, {order, crashes, rejoin});
                REQUIRE(scripted.ends_within(600s));
                scripted.world->run_for(60s);
                REQUIRE(scripted.world->broken_rules().empty());
                const bool lost = scripted.world->reason(1).starts_with("quorum_lost");
                REQUIRE((scripted.world->state(1) == "succeeded" || (std::string(rejoin) == "0s" && lost)));
                ++histories;
            }
        }
    } while (std::ranges::next_permutation(order).found);
    CHECK(histories == 90 * 4);
}

TEST_CASE("a damaged record closes its channel, and a damaged chunk is sent again", "[sim]") {
    for (const auto side : {Side::client, Side::coordinator}) {
        ScriptedWorld scripted(2, Transcript::Keep::everything, both_ways(5ms, 100'000));
        scripted.submit(experiment_text(2, patient_text));
        scripted.world->corrupt(0, side);  // the assignment or its answer
        scripted.world->at(scripted.world->now() + 3s, [&] { scripted.world->corrupt(1, side); });  // a chunk or a word
        require_success(scripted);
        CHECK(says(scripted, "assign 1/1#2@1"));  // it came back
    }
}

TEST_CASE("one way is enough to lose a session, whichever it is", "[sim]") {
    for (const auto side : {Side::client, Side::coordinator}) {
        ScriptedWorld scripted(2, Transcript::Keep::everything);
        scripted.submit(experiment_text(2, patient_text));
        scripted.world->run_for(100ms);
        scripted.world->block(0, side, 20s);
        require_success(scripted);
        CHECK(says(scripted, "#2@1"));  // under the next attempt, of this round or the next
    }
}

TEST_CASE("a stopped coordinator suspects nobody for what it did not hear meanwhile", "[sim]") {
    ScriptedWorld scripted(2, Transcript::Keep::everything);
    scripted.submit(experiment_text(2, "min_clients = 2\nquorum = \"100%\"\nrejoin = \"0s\""));
    scripted.world->run_for(100ms);
    scripted.world->stop_process(World::coordinator_process, 8s);
    require_success(scripted);
}

TEST_CASE("a client whose disk is full keeps its place until there is room", "[sim]") {
    ScriptedWorld scripted(2, Transcript::Keep::everything);
    scripted.submit(experiment_text(2, patient_text));
    scripted.world->run_for(100ms);
    scripted.world->fill_disk(0, 30s);
    require_success(scripted);
    CHECK(scripted.world->now() > 90s);
    CHECK(scripted.clients[0]->base[1] == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("a coordinator whose disk is full stores nothing, says nothing that depends on it, and goes on", "[sim]") {
    ScriptedWorld scripted(2, Transcript::Keep::everything);
    scripted.submit(experiment_text(3, patient_text));
    scripted.world->run_for(2s);
    scripted.world->fill_disk(World::coordinator_process, 30s);
    require_success(scripted);
}

TEST_CASE("a power cut may leave a transaction that nobody heard of", "[sim][faults]") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        INFO(seed);
        ScriptedWorld scripted(2);
        scripted.submit(experiment_text(3, patient_text));
        scripted.world->slow_store(200ms, 60s);
        RandomStream random({.seed = seed, .purpose = "test"});
        for (int i = 0; i < 4; ++i) {
            scripted.world->at(scripted.world->now() + 1s + Duration(random.below(20'000'000'000)),
                               [&] { scripted.world->cut_coordinator_power(random, 1s); });
        }
        require_success(scripted);
    }
}

TEST_CASE("a clock that jumps by an hour is nobody's delay, and one that runs fast or slow changes no bit", "[sim]") {
    ScriptedWorld plain(2);
    plain.submit(experiment_text(3, patient_text));
    require_success(plain);
    ScriptedWorld skewed(2);
    skewed.submit(experiment_text(3, patient_text));
    skewed.world->set_clock_rate(World::coordinator_process, 1.3);
    skewed.world->set_clock_rate(0, 0.7);
    skewed.world->jump_clock(1, 3600s);
    require_success(skewed);
    CHECK(skewed.world->last_model(1) == plain.world->last_model(1));

    ScriptedWorld late(2);
    late.submit(experiment_text(3, "min_clients = 2\nquorum = \"100%\"\nstraggler_deadline = \"10m\""));
    late.world->run_for(500ms);
    late.world->jump_clock(World::coordinator_process, 3600s);
    require_success(late);
    CHECK(late.world->last_model(1) == plain.world->last_model(1));
}

TEST_CASE("faults are chosen by their names, and a wrong one names the nearest", "[sim]") {
    CHECK(parse_faults("none")->empty());
    CHECK(parse_faults("all")->size() == fault_names().size());
    CHECK(*parse_faults("disk, crash-client") == std::vector{Fault::disk, Fault::crash_client});
    const auto wrong = parse_faults("loss,crash-clint");
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().code == "unknown_fault");
    CHECK_THAT(wrong.error().message, Catch::Contains("crash-client"));
}

}  // namespace causeway::simulation
