// Federations of modelled work: what a round takes and moves follows from links and speeds, and can be checked by hand.
#include <catch2/catch.hpp>

#include "simulation/mix.h"
#include "simulation/modelled_world.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t parameters = 1'000'000;
constexpr double model_bytes = 4e6 + 512;

std::string scaled_experiment(std::uint32_t rounds, std::size_t clients, const std::string& sync = "") {
    return "[experiment]\nname = \"scale\"\nrounds = " + std::to_string(rounds) +
           "\n[data]\ndataset = \"none\"\nshape = [8]\n[model]\nlayers = [\"dense 8\"]\n[regime]\npreset = "
           "\"fedavg\"\n[sync]\nmin_clients = " +
           std::to_string(clients) + "\n" + sync + "\n[evaluation]\nwhere = \"none\"\n";
}

ModelledSetup setup_of(std::size_t clients, LinkOptions link, Duration per_example) {
    ModelledSetup setup;
    setup.parameters = parameters;
    setup.examples = 1000;
    setup.links.assign(clients, link);
    setup.per_example.assign(clients, per_example);
    setup.dataset.name = "none";
    setup.dataset.shape = {8};
    setup.dataset.classes = 8;
    for (std::size_t i = 0; i < clients; ++i) {
        setup.names.push_back("client-" + std::to_string(i));
    }
    return setup;
}

/// The summary of the last of some rounds.
Json last_scaled_round(ModelledWorld& modelled, const std::string& text) {
    auto& world = *modelled.world;
    REQUIRE(start_and_wait(world));
    world.submit(text);
    REQUIRE(world.run_until([&] { return world.over(1); }, 1000 * 3600s));
    INFO(world.reason(1));
    REQUIRE(world.state(1) == "succeeded");
    REQUIRE(world.broken_rules().empty());
    return world.log(1).commits.back().summary;
}

}  // namespace

TEST_CASE("a round takes the model's way down, the training and the update's way up", "[sim]") {
    ModelledWorld modelled(setup_of(3, {{20ms, 1e6}, {20ms, 4e6}}, 2ms));
    const auto summary = last_scaled_round(modelled, scaled_experiment(3, 3));
    const double expected = model_bytes / 4e6 + 2.0 + model_bytes / 1e6;
    CHECK(summary["seconds"].number() == Approx(expected).epsilon(0.05));
    CHECK(summary["bytes_up"].number() == Approx(3 * model_bytes).epsilon(0.001));
    CHECK(summary["bytes_down"].number() == Approx(3 * model_bytes).epsilon(0.001));
}

TEST_CASE("the coordinator's line is shared, and bounds a round of many", "[sim]") {
    auto setup = setup_of(40, both_ways(1ms, 100e6), 1us);
    setup.line = {20e6, 40e6};  // in, out
    ModelledWorld modelled(setup);
    const auto summary = last_scaled_round(modelled, scaled_experiment(2, 40));
    CHECK(summary["seconds"].number() == Approx(40 * model_bytes / 20e6 + 40 * model_bytes / 40e6).epsilon(0.05));
}

TEST_CASE("the slowest class decides a round that waits for all", "[sim]") {
    auto setup = setup_of(50, {}, 1us);
    setup.per_example = *parse_speeds("90% 1ms; 10% 30ms", 50, 3);
    CHECK(std::count(setup.per_example.begin(), setup.per_example.end(), 30ms) == 5);
    ModelledWorld all(setup);
    CHECK(last_scaled_round(all, scaled_experiment(2, 50))["seconds"].number() == Approx(30).epsilon(0.1));
    ModelledWorld quick(setup);
    const auto cut =
        last_scaled_round(quick, scaled_experiment(2, 40, "quorum = \"80%\"\nstraggler_deadline = \"5s\""));
    CHECK(cut["seconds"].number() < 5.1);
}

TEST_CASE("links are written as a mix of classes with exact shares", "[sim]") {
    const auto links = parse_links("80% uplink=10mbit,downlink=50mbit,delay=20ms; 20% uplink=2mbit,delay=80ms", 10, 7);
    REQUIRE(links);
    std::size_t slow = 0;
    for (const auto& link : *links) {
        slow += link.up.rate == 250e3;
        CHECK((link.up.rate == 250e3 ? link.down.rate == 250e3 && link.down.delay == 80ms
                                     : link.up.rate == 1.25e6 && link.down.rate == 6.25e6 && link.up.delay == 20ms));
    }
    CHECK(slow == 2);
    CHECK(parse_links("33.3% delay=1ms; 33.3% delay=2ms; 33.4% delay=3ms", 3, 7));
    for (const auto* wrong :
         {"", "50% uplink=1mbit", "100% uplink=fast", "100% uplink=10", "100% up=1mbit",
          "100% delay=-3ms", "100% uplink=1e999mbit", "150% delay=1ms; -50% delay=2ms", "100%",
          "uplink=1mbit; client-5: delay=1ms", "uplink=1mbit; client-0: delay=1ms", "uplink=1mbit; bob: delay=1ms",
          "uplink=1mbit; client-1.5: delay=1ms", "client-1: delay=1ms", "uplink=1mbit; 50% uplink=2mbit"}) {
        INFO(wrong);
        const auto result = parse_links(wrong, 4, 1);
        REQUIRE_FALSE(result);
        CHECK(result.error().code == "bad_mix");
    }
}

TEST_CASE("one link is everybody's, and a client's own goes over its class", "[sim]") {
    const auto links = parse_links("uplink=2mbit,downlink=8mbit,delay=20ms; client-2: uplink=16mbit", 3, 7);
    REQUIRE(links);
    CHECK_FALSE(parse_links("uplink=2mbit,jitter=2ms", 3, 7));  // the virtual network has none
    CHECK((*parse_shaped_links("uplink=2mbit,jitter=2ms", 3, 7))[2].jitter == 2ms);
    CHECK((*links)[0].up.rate == 250e3);
    CHECK((*links)[0].down.delay == 20ms);
    CHECK((*links)[1].up.rate == 2e6);
    CHECK((*links)[2].down.rate == 1e6);
    CHECK(*parse_factors("10x", 2, 1) == std::vector<double>{10, 10});
    CHECK(*parse_factors("1x; client-1: 2.5x", 2, 1) == std::vector<double>{2.5, 1});
    CHECK_FALSE(parse_factors("10", 2, 1));
    CHECK(*parse_slownesses("1x; client-2: 40x", 2, 1) == std::vector<double>{1, 40});
    CHECK_FALSE(parse_slowness("0.5x"));  // nothing makes a machine faster
    CHECK_FALSE(parse_slowness("20000x"));
    CHECK(*parse_speeds("1ms; client-2: 10x", 2, 1) == std::vector<Duration>{1ms, 200us});
}

TEST_CASE("a thousand modelled clients keep every rule", "[sim]") {
    auto setup = setup_of(1000, both_ways(10ms, 1e6), 10us);
    setup.parameters = 10'000;
    setup.links = *parse_links("50% uplink=8mbit,delay=10ms; 50% uplink=1mbit,delay=90ms", 1000, 2);
    ModelledWorld modelled(setup);
    const auto summary = last_scaled_round(modelled, scaled_experiment(3, 1000));
    CHECK(summary["clients"].integer() == 1000);
}

}  // namespace causeway::simulation
