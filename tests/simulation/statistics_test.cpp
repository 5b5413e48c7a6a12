// `data.normalise = "federated"` in the virtual world: numbers that no order, crash or grouping changes, the same ones
// that one machine with all examples finds; and a replay that finds them again.
#include <catch2/catch.hpp>

#include "aggregation/column_sums.h"
#include "configs/reader.h"
#include "configs/statistics.h"
#include "points.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

std::string normalised_text(std::string file, const std::string& how = "federated") {
    const std::string shape = "shape = [5]\n";
    return file.replace(file.find(shape), shape.size(), shape + "normalise = \"" + how + "\"\n");
}

std::string normalised_experiment(const std::string& how = "federated",
                                  const std::string& regime = "preset = \"fedavg\"") {
    return normalised_text(
        points_experiment(3, "batch = 8", "min_clients = 3\nquorum = \"100%\"\nrejoin = \"10m\"", regime), how);
}

/// What one machine with all examples finds.
std::string of_all(std::size_t clients) {
    ColumnSums sums(5, 1);
    for (std::size_t i = 0; i < clients; ++i) {
        REQUIRE(sums.add(points(10 + 7 * i, i + 1).features));
    }
    return to_text(sums.statistics());
}

using Disturb = std::function<void(World&)>;

void wait_for(World& world, std::size_t nodes) {
    REQUIRE(world.run_until([&] { return world.coordinator().machine()->members().members().size() == nodes; }, 60s));
}

RunLog run_statistics(const std::string& file, const Disturb& disturb = {}, std::optional<Dataset> held_out = {},
                      std::size_t hosts = 0) {
    RealCast cast(3, std::move(held_out), hosts);
    World world(cast.world());
    world.start();
    wait_for(world, 3 + hosts);
    world.submit(file);
    REQUIRE(world.run_until([&] { return world.coordinator().store().find(1) != nullptr; }, 60s));
    if (disturb) {
        disturb(world);
    }
    REQUIRE(world.run_until([&] { return world.over(1); }, 3600s));
    REQUIRE(world.state(1) == "succeeded");
    for (const auto& rule : world.broken_rules()) {
        FAIL_CHECK(rule);
    }
    return world.coordinator().store().log(1);
}

std::string numbers_of(const RunLog& log) {
    return found_statistics(*read_experiment_or_fail(log.saved.file, "points"));
}

}  // namespace

TEST_CASE("the clients' sums give the numbers of all examples, and each value is normalised by them",
          "[statistics][sim]") {
    const auto log = run_statistics(normalised_experiment());
    const auto numbers = of_all(3);
    CHECK(numbers_of(log) == numbers);
    REQUIRE(log.commits.size() == 4);
    CHECK(log.commits[0].participants.size() == 3);
    // As if somebody had known them before.
    const auto given = run_statistics(normalised_experiment("federated " + numbers));
    CHECK(given.commits[0].participants.empty());
    CHECK(log.commits.back().model == given.commits.back().model);
    CHECK(log.commits.back().model != run_statistics(normalised_experiment("none")).commits.back().model);
}

TEST_CASE("crashes and cuts at every effect of round 0 change no bit", "[statistics][sim]") {
    const auto undisturbed = run_statistics(normalised_experiment());
    for (std::uint32_t effects = 0; effects < 25; ++effects) {
        const auto log = run_statistics(normalised_experiment(), [&](World& world) {
            world.crash_coordinator_after(effects, 200ms);
            world.crash_client_after(effects % 3, effects, 300ms);
        });
        REQUIRE(numbers_of(log) == numbers_of(undisturbed));
        REQUIRE(log.commits.back().model == undisturbed.commits.back().model);
    }
}

TEST_CASE("a replay finds the numbers again, and says when the log has others", "[statistics][sim]") {
    auto log = run_statistics(normalised_experiment());
    const auto again = [&] {
        RealCast cast(3);
        auto rounds = replay(log, cast.coordinator, [&](const std::string& node) { return cast.find(node); });
        REQUIRE(rounds);
        return *rounds;
    };
    for (const auto& round : again()) {
        CHECK(round.same());
    }
    log.saved.file = normalised_text(points_experiment(3, "batch = 8", "min_clients = 3\nquorum = 1"),
                                     "federated 1,1,1,1,1 2,2,2,2,2");
    CHECK(again().front().differs == std::vector<std::string>{"data.normalise"});
    log.commits[0].participants.pop_back();  // other sums: not the digest that was stored
    CHECK_FALSE(again().front().same());
}

TEST_CASE("what is held out is evaluated as the clients train", "[statistics][sim]") {
    const auto evaluated = [](const std::string& how) {
        RealCast cast(3, points(40, 99));
        World world(cast.world());
        world.start();
        wait_for(world, 3);
        world.submit(normalised_experiment(how));
        REQUIRE(world.run_until([&] { return world.over(1); }, 3600s));
        return world.coordinator().machine()->experiments().at(1).records().back().evaluation;
    };
    const auto found = evaluated("federated");
    REQUIRE(found);
    // Here the held-out examples are given raw, so that of a known normalisation they are not normalised.
    const auto raw = evaluated("federated " + of_all(3));
    REQUIRE(raw);
    CHECK(found->loss != raw->loss);
    CHECK(found->accuracy >= raw->accuracy);
}

TEST_CASE("relays train on normalised values, too", "[statistics][sim]") {
    const std::string split = "preset = \"gsfl\"\ncut = \"gelu\"\ngroups = 2";
    const auto log = run_statistics(normalised_experiment("federated", split), {}, {}, 1);
    CHECK(numbers_of(log) == of_all(3));
    const auto given = run_statistics(normalised_experiment("federated " + of_all(3), split), {}, {}, 1);
    CHECK(log.commits.back().model == given.commits.back().model);
}

}  // namespace causeway::simulation
