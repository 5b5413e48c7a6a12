// Behaviour of a whole federation in virtual time.
#include <catch2/catch.hpp>

#include "common/random.h"
#include "scripted_work.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

Digest undisturbed_world(std::uint32_t rounds, std::size_t clients) {
    ScriptedWorld scripted(clients);
    scripted.submit(experiment_text(rounds, "min_clients = " + std::to_string(clients)));
    REQUIRE(scripted.ends_within(600s));
    REQUIRE(scripted.world->state(1) == "succeeded");
    return scripted.world->last_model(1);
}

}  // namespace

TEST_CASE("an experiment runs its rounds and says so to a watcher", "[sim]") {
    ScriptedWorld scripted(3);
    scripted.submit(experiment_text(4, "min_clients = 3"));
    scripted.world->request("experiment.watch", Json::object().set("experiment", 1));
    REQUIRE(scripted.ends_within(60s));
    scripted.world->run_for(1s);
    const auto events = scripted.world->events();
    REQUIRE(events.size() == 5);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(events[i]["event"].text() == "round");
        CHECK(events[i]["round"].integer() == static_cast<std::int64_t>(i + 1));
        CHECK(events[i]["clients"].integer() == 3);
        CHECK(events[i]["accuracy"].number() == Approx(1 - 0.5 / static_cast<double>(i + 1)));
        CHECK(events[i]["bytes_up"].integer() > 3 * static_cast<std::int64_t>(scripted_bytes));
    }
    CHECK(events[4]["event"].text() == "done");
    CHECK(events[4]["state"].text() == "succeeded");
    CHECK(events[4]["model_sha256"].text() == scripted.world->last_model(1).hex());
    CHECK(scripted.world->broken_rules().empty());
}

TEST_CASE("who watches a long run afterwards, or after a restart, is told what was told while it ran", "[sim]") {
    ScriptedWorld scripted(2);
    auto& world = *scripted.world;
    scripted.clients[1]->training_time = [](const Assign&) { return 100ms; };
    scripted.work.failures["evaluate"] = 1;
    scripted.submit(experiment_text(150, "min_clients = 2"));
    world.request("experiment.watch", Json::object().set("experiment", 1));
    REQUIRE(scripted.ends_within(3600s));
    world.run_for(1s);
    const auto live = world.events();
    REQUIRE(live.size() == 151);
    CHECK_FALSE(live[0]["accuracy_note"].text().empty());
    for (const auto again : {"at once", "after a restart"}) {
        INFO(again);
        const auto before = world.events().size();
        world.request("experiment.watch", Json::object().set("experiment", 1));
        world.run_for(1s);
        const auto all = world.events();
        REQUIRE(all.size() == before + live.size());
        for (std::size_t i = 0; i < live.size(); ++i) {
            REQUIRE(all[before + i].dump() == live[i].dump());
        }
        world.crash_coordinator(1s);
        world.run_for(2s);
    }
    CHECK(world.broken_rules().empty());
}

TEST_CASE("a straggler does not hold up the next round", "[sim]") {
    ScriptedWorld scripted(2);
    scripted.clients[1]->training_time = [](const Assign& assign) { return assign.lease.round == 1 ? 60s : 1s; };
    scripted.submit(experiment_text(3, "quorum = 1\nstraggler_deadline = \"10s\""));
    const auto begin = scripted.world->now();
    REQUIRE(scripted.world->run_until([&] { return scripted.world->rounds(1) == 1; }, 60s));
    const auto took = scripted.world->now() - begin;
    CHECK(took > 9s);
    CHECK(took < 11s);
    REQUIRE(scripted.ends_within(60s));
    CHECK(scripted.world->state(1) == "succeeded");
    CHECK(scripted.clients[1]->trainings > 0);  // drawn again once it had let go
}

TEST_CASE("with rejoin = 0 the others go on within 3 s of a stall", "[sim]") {
    ScriptedWorld scripted(3);
    scripted.submit(experiment_text(1, "quorum = 2\nrejoin = \"0s\""));
    scripted.world->run_for(500ms);
    const auto stalled = scripted.world->now();
    scripted.world->stall(2, 8s);
    REQUIRE(scripted.ends_within(60s));
    CHECK(scripted.world->now() - stalled < 3s);
    scripted.world->run_for(20s);
    CHECK(scripted.clients[2]->base[1].empty());
    CHECK(scripted.world->broken_rules().empty());
}

TEST_CASE("work done during a stall shorter than rejoin counts", "[sim]") {
    ScriptedWorld scripted(2);
    scripted.submit(experiment_text(1, "min_clients = 2\nrejoin = \"60s\""));
    scripted.world->run_for(500ms);
    scripted.world->stall(1, 8s);
    REQUIRE(scripted.ends_within(60s));
    scripted.world->run_for(1s);
    CHECK(scripted.world->state(1) == "succeeded");
    CHECK(scripted.clients[1]->trainings == 1);
    CHECK(scripted.clients[1]->base[1] == std::vector<std::uint32_t>{1});
}

TEST_CASE("a member away for longer than rejoin learns that its lease is gone and joins the next round", "[sim]") {
    ScriptedWorld scripted(2);
    scripted.submit(experiment_text(20, "quorum = 1\nrejoin = \"5s\""));
    scripted.world->run_for(500ms);
    scripted.world->crash_client(1, 12s);
    REQUIRE(scripted.ends_within(600s));
    scripted.world->run_for(1s);
    CHECK(scripted.world->state(1) == "succeeded");
    CHECK(scripted.clients[1]->base[1].size() > 5);
    CHECK(scripted.clients[1]->base[1].front() > 1);
    CHECK(scripted.world->broken_rules().empty());
}

TEST_CASE("one client is enough when one is asked for", "[sim]") {
    ScriptedWorld scripted(1);
    scripted.submit(experiment_text(2, "min_clients = 1\nstart_timeout = \"3s\""));
    REQUIRE(scripted.ends_within(60s));
    CHECK(scripted.world->state(1) == "succeeded");
}

TEST_CASE("updates of weight zero alone fail the round and leave the model", "[sim]") {
    ScriptedWorld scripted(2);
    for (auto& client : scripted.clients) {
        client->weight = [](const Assign& assign) { return assign.lease.round == 2 ? 0 : 5; };
    }
    scripted.submit(experiment_text(3, "min_clients = 2"));
    REQUIRE(scripted.ends_within(60s));
    CHECK(scripted.world->state(1) == "failed");
    CHECK_THAT(scripted.world->reason(1), Catch::StartsWith("zero_total_weight"));
    CHECK(scripted.world->rounds(1) == 1);
}

TEST_CASE("a refused update is left out and its client stays", "[sim]") {
    ScriptedWorld scripted(3);
    scripted.work.firewall = [](const AbsorbUpdate& job) -> std::optional<Refused> {
        if (job.node == "b" && job.round == 1) {
            return Refused{{}, job.update.digest, "non_finite", "NaN", "dense1.weight", 3};
        }
        return std::nullopt;
    };
    scripted.submit(experiment_text(2, "min_clients = 3\nquorum = 2"));
    REQUIRE(scripted.ends_within(60s));
    scripted.world->run_for(1s);
    CHECK(scripted.world->state(1) == "succeeded");
    CHECK(scripted.clients[1]->base[1] == std::vector<std::uint32_t>{2});
    CHECK(scripted.clients[0]->base[1] == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("a full disk pauses the experiment, and it goes on by itself", "[sim]") {
    const auto expected = undisturbed_world(2, 2);
    ScriptedWorld scripted(2);
    scripted.work.failures = {{"make_model", 2}, {"absorb", 40}, {"finish_round", 3}};
    scripted.submit(experiment_text(2, "min_clients = 2"));
    // What is shown, not what is stored: a full disk could not store that it is.
    const auto shown = [&] { return scripted.world->coordinator().machine()->experiments().at(1).saved(); };
    REQUIRE(scripted.world->run_until([&] { return shown().state == "paused"; }, 60s));
    CHECK_THAT(shown().reason, Catch::Contains("disk_full"));
    REQUIRE(scripted.world->run_until([&] { return shown().state == "running"; }, 60s));
    REQUIRE(scripted.ends_within(120s));
    CHECK(shown().reason.empty());
    CHECK(scripted.world->state(1) == "succeeded");
    CHECK(scripted.world->last_model(1) == expected);
}

TEST_CASE("without a held-out set the run goes on and has no accuracy", "[sim]") {
    ScriptedWorld scripted(2);
    scripted.work.failures = {{"evaluate", 100}};
    scripted.submit(experiment_text(2, "min_clients = 2"));
    scripted.world->request("experiment.watch", Json::object().set("experiment", 1));
    REQUIRE(scripted.ends_within(60s));
    scripted.world->run_for(1s);
    CHECK(scripted.world->state(1) == "succeeded");
    REQUIRE(scripted.world->events().size() == 3);
    CHECK(scripted.world->events()[0]["accuracy"].is_null());
}

TEST_CASE("an update resumes from the last chunk after the link was down", "[sim]") {
    ScriptedWorld scripted(1, Transcript::Keep::nothing, both_ways(5ms, 100'000));  // 4 s an update
    scripted.submit(experiment_text(1, "min_clients = 1"));
    REQUIRE(scripted.world->run_until([&] { return scripted.world->network().bytes_up() > 200'000; }, 60s));
    scripted.world->cut(0);
    REQUIRE(scripted.ends_within(60s));
    CHECK(scripted.world->state(1) == "succeeded");
    CHECK(scripted.world->network().bytes_up() < scripted_bytes + 2 * simulated_chunk);
    CHECK(scripted.clients[0]->trainings == 1);
}

TEST_CASE("arrival order does not change the model", "[sim]") {
    const auto expected = undisturbed_world(3, 4);
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        CAPTURE(seed);
        ScriptedWorld scripted(4);
        for (std::size_t i = 0; i < 4; ++i) {
            scripted.clients[i]->training_time = [seed, i](const Assign& assign) {
                RandomStream stream({.seed = seed, .purpose = "test", .round = assign.lease.round, .node = i});
                return Duration(std::chrono::milliseconds(stream.below(5000)));
            };
        }
        scripted.submit(experiment_text(3, "min_clients = 4"));
        REQUIRE(scripted.ends_within(60s));
        REQUIRE(scripted.world->last_model(1) == expected);
    }
}

}  // namespace causeway::simulation
