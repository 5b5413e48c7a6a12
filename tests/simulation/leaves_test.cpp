// A coordinator that lies, in the virtual world: the nodes judge by their policies what its programs send, and what
// they do not allow stays, whatever it calls the regime. Lies reach whole sessions, as a real coordinator's would.
#include <catch2/catch.hpp>

#include "client/policy.h"
#include "configs/presets.h"
#include "points.h"
#include "split/flow.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

using Lie = std::function<void(Assign&)>;

struct Played {
    std::string state, reason;
    std::uint64_t sent = 0;  // by the clients
};

/// A federation whose nodes have this policy, under a coordinator that changes each assignment so.
Played play_lies(const std::string& regime, const std::string& policy, const Lie& lie, std::size_t hosts) {
    RealCast cast(2, std::nullopt, hosts);
    auto options = cast.world();
    const auto rules = *node::parse_policy(policy, "policy.toml");
    for (auto& client : options.clients) {
        client.policy = [rules](const Assign& assign, node::Asked asked) {
            return node::judge(rules, assign, asked, node::LocalTime{1, 12 * 60});
        };
    }
    options.forge = [lie](Message& message) {
        if (auto* assign = std::get_if<Assign>(&message)) {
            lie(*assign);
        }
    };
    World world(std::move(options));
    world.start();
    REQUIRE(
        world.run_until([&] { return world.coordinator().machine()->members().members().size() == 2 + hosts; }, 60s));
    world.submit(points_experiment(2, "batch = 8", "min_clients = 2\nquorum = \"100%\"", regime));
    REQUIRE(world.run_until([&] { return world.coordinator().store().find(1) != nullptr; }, 60s));
    REQUIRE(world.run_until([&] { return world.over(1); }, 3600s));
    return {world.state(1), world.reason(1), world.network().bytes_up()};
}

/// The client's program of a flow, cut in the middle of what it is given.
void make_split(Assign& assign, const char* flow) {
    const auto chain = *Chain::from_architecture(assign.architecture);
    const std::vector<std::uint32_t> cuts{1};
    const auto program = compile_flow(flow, {.chain = chain, .cell = {}, .stages = 2, .cuts = cuts});
    REQUIRE(program);
    assign.program = to_text(*program);
    assign.segment = "[0, 1)";
    assign.peers = {{1, "host-0", 0}};
    assign.data_node = "client-0";
    assign.examples = 10;
}

}  // namespace

TEST_CASE("an honest coordinator's rounds are taken under the node's own policy", "[leaves][sim]") {
    CHECK(play_lies(
              "preset = \"fedavg\"", "", [](Assign&) {}, 0)
              .state == "succeeded");
    CHECK(play_lies(
              "preset = \"split\"\ncut = \"gelu\"", "allow_split = true", [](Assign&) {}, 1)
              .state == "succeeded");
    const auto refused = play_lies(
        "preset = \"split\"\ncut = \"gelu\"", "", [](Assign&) {}, 1);
    CHECK(refused.state == "failed");
    CHECK(refused.reason.find("policy_split") != std::string::npos);
}

TEST_CASE("nothing that the policy keeps leaves under another name", "[leaves][sim]") {
    struct Case {
        std::string policy;
        Lie lie;
        std::string code;
    };
    const std::vector<Case> lies = {
        {"", [](Assign& a) { make_split(a, "split"); }, "regime_mismatch"},
        {"", [](Assign& a) { make_split(a, "split"), a.regime = ""; }, "policy_split"},
        {"", [](Assign& a) { make_split(a, "split"), a.regime = "of-next-year"; }, "policy_split"},
        {"regimes = [\"fedavg\"]\nallow_split = true", [](Assign& a) { make_split(a, "split"); }, "regime_mismatch"},
        {"allow_split = true\nkeep_labels = true", [](Assign& a) { make_split(a, "split"), a.regime = "split"; },
         "policy_labels"},
        {"", [](Assign& a) { a.program = "statistics"; }, "policy_statistics"},
        {"", [](Assign& a) { a.program += "send parameters to 1\n", a.regime = ""; }, "policy_split"},
        {"allow_split = true", [](Assign& a) { a.program += "send parameters to 1\n", a.regime = ""; },
         "policy_parameters"},
        {"allow_split = true",
         [](Assign& a) { a.program = "load\nsend labels to 1\nsend activations to 1\n", a.regime = ""; }, "raw_inputs"},
    };
    for (const auto& [policy, lie, code] : lies) {
        INFO(policy << ": " << code);
        const auto played = play_lies("preset = \"fedavg\"", policy, lie, 0);
        CHECK(played.state == "failed");
        CHECK(played.reason.find(code) != std::string::npos);
        CHECK(played.sent < 4000);  // greetings and refusals: no update, no stream
    }
    CHECK(play_lies(
              "preset = \"split\"\ncut = \"gelu\"", "allow_split = true", [](Assign& a) { a.regime = "fedavg"; }, 1)
              .reason.find("regime_mismatch") != std::string::npos);
}

}  // namespace causeway::simulation
