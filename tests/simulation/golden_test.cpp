// Whole histories, line by line, against files: a change of behaviour shows as a difference that a person can read.
//
// CAUSEWAY_GOLDEN=write rewrites the files; look at the difference before committing it.
#include <cstdlib>
#include <fstream>

#include <catch2/catch.hpp>

#include "common/file.h"
#include "scripted_work.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

void compare_with_golden(const std::string& name, const std::string& transcript) {
    const auto path = std::string(CAUSEWAY_SOURCE_ROOT) + "/tests/simulation/golden/" + name + ".txt";
    if (std::getenv("CAUSEWAY_GOLDEN") != nullptr) {
        std::ofstream(path) << transcript;
    }
    const auto golden = read_file(path, 1 << 20);
    REQUIRE(golden);
    INFO(path << "\nwas:\n" << as_text(*golden) << "\nis:\n" << transcript);
    CHECK(as_text(*golden) == transcript);
}

}  // namespace

TEST_CASE("two clients train two rounds", "[golden]") {
    ScriptedWorld scripted(2, Transcript::Keep::everything);
    scripted.submit(experiment_text(2, "min_clients = 2"));
    REQUIRE(scripted.ends_within(60s));
    scripted.world->run_for(1s);
    CHECK(scripted.world->state(1) == "succeeded");
    compare_with_golden("happy_path", scripted.world->transcript());
}

TEST_CASE("a straggler is left out at the deadline and told", "[golden]") {
    ScriptedWorld scripted(2, Transcript::Keep::everything);
    scripted.clients[1]->training_time = [](const Assign& assign) { return assign.lease.round == 1 ? 60s : 1s; };
    scripted.submit(experiment_text(2, "quorum = 1\nstraggler_deadline = \"10s\""));
    REQUIRE(scripted.ends_within(60s));
    scripted.world->run_for(1s);
    compare_with_golden("straggler", scripted.world->transcript());
}

TEST_CASE("a coordinator killed in the middle of a round goes on by itself", "[golden]") {
    ScriptedWorld scripted(2, Transcript::Keep::everything);
    scripted.clients[1]->training_time = [](const Assign&) { return 3s; };
    scripted.submit(experiment_text(1, "min_clients = 2"));
    scripted.world->run_for(2s);  // a has reported, b trains
    scripted.world->crash_coordinator(500ms);
    REQUIRE(scripted.ends_within(60s));
    scripted.world->run_for(1s);
    CHECK(scripted.clients[0]->trainings == 1);
    CHECK(scripted.clients[1]->trainings == 1);
    compare_with_golden("coordinator_restart", scripted.world->transcript());
}

TEST_CASE("too few clients end the experiment at the start timeout", "[golden]") {
    ScriptedWorld scripted(1, Transcript::Keep::everything);
    scripted.submit(experiment_text(2, "min_clients = 2\nstart_timeout = \"3s\""));
    REQUIRE(scripted.ends_within(60s));
    scripted.world->run_for(1s);
    compare_with_golden("insufficient_clients", scripted.world->transcript());
}

TEST_CASE("a round whose quorum is gone fails and leaves the model as it was", "[golden]") {
    ScriptedWorld scripted(2, Transcript::Keep::everything);
    scripted.submit(experiment_text(3, "min_clients = 2\nquorum = \"100%\"\nrejoin = \"5s\""));
    scripted.world->run_until([&] { return scripted.world->rounds(1) == 1; }, 60s);
    const auto before = scripted.world->last_model(1);
    scripted.world->crash_client(1, 600s);
    REQUIRE(scripted.ends_within(60s));
    scripted.world->run_for(1s);
    CHECK(scripted.world->last_model(1) == before);
    compare_with_golden("quorum_lost", scripted.world->transcript());
}

}  // namespace causeway::simulation
