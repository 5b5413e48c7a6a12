// Whole experiments of relays through coordinator, clients and hosts, against loops that know nothing of any of them.
//
// One relay is split learning: the whole model trained on one client's data after another, optimizer and all. Relays of
// one client each are SplitFed: every client trains the whole model alone, and both segments are averaged, which is the
// average of the models. The loops below are written from those sentences.
#include <cmath>

#include <catch2/catch.hpp>

#include "configs/batches.h"
#include "coordinator/decisions.h"
#include "common/random.h"
#include "model/checkpoint.h"
#include "points.h"
#include "split/flow.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr const char* train = "optimizer = { kind = \"sgd\", learning_rate = 0.1, momentum = 0.9 }\nbatch = 4\n"
                              "local_epochs = 2";
constexpr std::uint64_t seed = 11;  // of points_experiment
constexpr std::size_t clients = 4;

/// What a run came to: the models of its rounds, and the tours of each.
struct Played {
    std::vector<Digest> models;
    std::map<std::uint32_t, std::vector<std::vector<std::string>>> groups;
    std::map<Digest, Bytes> files;
};

Played play(const std::string& regime, std::uint32_t rounds = 3) {
    RealCast cast(clients, std::nullopt, 1);
    auto options = cast.world();
    World world(std::move(options));
    world.start();
    world.run_for(1s);
    world.submit(points_experiment(rounds, train, "quorum = \"100%\"\nmin_clients = 4\n[evaluation]\nwhere = \"none\"",
                                   regime));
    REQUIRE(world.run_until([&] { return world.over(1); }, 3600s));
    INFO(world.reason(1));
    REQUIRE(world.state(1) == "succeeded");
    REQUIRE(world.broken_rules().empty());
    const auto log = world.log(1);
    Played played;
    for (const auto& commit : log.commits) {
        played.models.push_back(commit.model);
        played.files[commit.model] = *cast.coordinator.read_model(commit.model);
    }
    for (const auto& decision : log.decisions) {
        for (const auto& group : decision.kind == decisions::groups ? decision.detail["groups"].items()
                                                                    : std::vector<Json>{}) {
            auto& tour = played.groups[decision.round].emplace_back();
            for (const auto& name : group.items()) {
                tour.push_back(name.text());
            }
        }
    }
    return played;
}

Chain chain_of_points() {
    return *Chain::parse({"dense 8", "gelu", "dense 6", "gelu", "dense 3"}, {5}, "cross-entropy");
}

/// The whole model on one client's data, in its own order of batches.
TrainResult train_alone(const ModelState& start, std::optional<OptimizerState> optimizer, std::size_t client,
                        std::uint32_t round) {
    const Chain chain = chain_of_points();
    const auto name = "client-" + std::to_string(client);
    const Dataset data = points(10 + 7 * client, client + 1);
    TrainingBatches batches(data, 4, {.seed = seed, .round = round, .node = node_key(name)});
    auto result =
        make_trainer()->train({.program = *compile_flow("local-epochs", {.chain = chain, .cell = whole_chain(chain)}),
                               .chain = chain,
                               .start = start,
                               .optimizer = *parse_optimizer("sgd learning_rate=0.1 momentum=0.9"),
                               .optimizer_state = std::move(optimizer),
                               .batch = 4,
                               .local_epochs = 2,
                               .draws = {.seed = seed, .round = round, .node = node_key(name)}},
                              batches);
    REQUIRE(result);
    return *std::move(result);
}

__extension__ typedef __int128 Wide;

/// The weighted mean, summed in integers and rounded once.
std::vector<float> mean(const std::vector<std::pair<std::vector<float>, std::uint64_t>>& parts) {
    std::vector<float> result(parts.front().first.size());
    std::uint64_t weight = 0;
    for (const auto& part : parts) {
        weight += part.second;
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
        Wide sum = 0;
        for (const auto& [values, examples] : parts) {
            sum += static_cast<Wide>(std::rint(static_cast<long double>(values[i]) * 0x1p62L)) *
                   static_cast<std::int64_t>(examples);
        }
        result[i] = static_cast<float>(static_cast<double>(static_cast<long double>(sum) * 0x1p-62L) /
                                       static_cast<double>(weight));
    }
    return result;
}

std::size_t number_of(const std::string& client) {
    return static_cast<std::size_t>(client.back() - '0');
}

ModelState model_of(const Played& played, std::uint32_t round) {
    return *from_safetensors(chain_of_points(), played.files.at(played.models.at(round)));
}

}  // namespace

TEST_CASE("split learning is training the whole model on one client after another, bit for bit", "[relays][property]") {
    for (const char* cut : {"1", "gelu", "dense:2", "gelu:2"}) {
        CAPTURE(cut);
        const auto played = play("preset = \"split\"\ncut = \"" + std::string(cut) + "\"");
        for (std::uint32_t round = 1; round < played.models.size(); ++round) {
            ModelState model = model_of(played, round - 1);
            std::optional<OptimizerState> optimizer;
            REQUIRE(played.groups.at(round).size() == 1);
            for (const auto& client : played.groups.at(round)[0]) {
                auto result = train_alone(model, std::move(optimizer), number_of(client), round);
                model = result.end;
                optimizer = result.optimizer_state;
            }
            REQUIRE(model_of(played, round).trainable.values == model.trainable.values);
        }
    }
}

TEST_CASE("gsfl with one group is split learning, and with as many groups as clients it is splitfed-v1, bit for bit",
          "[relays][property]") {
    const auto split = play("preset = \"split\"\ncut = \"gelu\"");
    CHECK(play("preset = \"gsfl\"\ncut = \"gelu\"\ngroups = 1").models == split.models);
    const auto splitfed = play("preset = \"splitfed-v1\"\ncut = \"gelu\"");
    CHECK(play("preset = \"gsfl\"\ncut = \"gelu\"\ngroups = 4").models == splitfed.models);
    CHECK(split.models != splitfed.models);
}

TEST_CASE("splitfed-v1 is every client's own training of the whole model, averaged by examples, bit for bit",
          "[relays][property]") {
    const auto played = play("preset = \"splitfed-v1\"\ncut = \"gelu\"");
    for (std::uint32_t round = 1; round < played.models.size(); ++round) {
        std::vector<std::pair<std::vector<float>, std::uint64_t>> parts;
        for (std::size_t client = 0; client < clients; ++client) {
            const auto alone = train_alone(model_of(played, round - 1), {}, client, round);
            parts.emplace_back(alone.end.trainable.values, 10 + 7 * client);
        }
        REQUIRE(model_of(played, round).trainable.values == mean(parts));
    }
}

TEST_CASE("u-shaped training is split learning bit for bit, and its labels never travel", "[relays][property]") {
    const auto split = play("preset = \"split\"\ncut = \"1\"");
    const auto shaped = play("preset = \"u-shaped\"\ncut = [\"1\", \"4\"]");
    CHECK(shaped.models == split.models);
    const Chain chain = chain_of_points();
    for (const std::uint32_t stage : {0u, 1u}) {
        const auto program =
            compile_flow("u-shaped", {.chain = chain, .cell = {.stage = stage}, .stages = 3, .cuts = {1, 4}});
        REQUIRE(program);
        CHECK(to_text(*program).find("labels") == std::string::npos);
    }
}

}  // namespace causeway::simulation
