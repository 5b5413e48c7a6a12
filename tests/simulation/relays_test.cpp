// Whole experiments of relays through coordinator, clients and hosts, against loops that know nothing of any of them.
//
// One relay is split learning: the whole model trained on one client's data after another, optimizer and all. Relays of
// one client each are SplitFed: every client trains the whole model alone, and both segments are averaged, which is the
// average of the models. SplitFed v2 has the clients' first layers apart and the others together, a batch of each in
// turn. With an overlap the first layers' gradients are those of older parameters. The loops below are written from
// those sentences.
#include <cmath>

#include <catch2/catch.hpp>

#include "configs/batches.h"
#include "coordinator/decisions.h"
#include "common/random.h"
#include "model/checkpoint.h"
#include "model/initialise.h"
#include "points.h"
#include "split/flow.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr const char* train = "optimizer = { kind = \"sgd\", learning_rate = 0.1, momentum = 0.9 }\nbatch = 4\n"
                              "local_epochs = 2";
constexpr std::uint64_t relay_seed = 11;  // of points_experiment
constexpr std::size_t relay_clients = 4;

/// What a run came to: the models of its rounds, and the tours of each.
struct RelaysPlayed {
    std::vector<Digest> models;
    std::map<std::uint32_t, std::vector<std::vector<std::string>>> groups;
    std::map<Digest, Bytes> files;
};

RelaysPlayed play_relays(const std::string& regime, std::uint32_t rounds = 3, std::size_t members = relay_clients) {
    RealCast cast(members, std::nullopt, 1);
    auto options = cast.world();
    World world(std::move(options));
    world.start();
    world.run_for(1s);
    world.submit(points_experiment(rounds, train, "quorum = \"100%\"\nmin_clients = " + std::to_string(members) +
                                       "\n[evaluation]\nwhere = \"none\"",
                                   regime));
    REQUIRE(world.run_until([&] { return world.over(1); }, 3600s));
    INFO(world.reason(1));
    REQUIRE(world.state(1) == "succeeded");
    REQUIRE(world.broken_rules().empty());
    const auto log = world.log(1);
    RelaysPlayed played;
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

Chain relay_chain_of_points() {
    return *Chain::parse({"dense 8", "gelu", "dense 6", "gelu", "dense 3"}, {5}, "cross-entropy");
}

/// The whole model on one client's data, in its own order of batches.
TrainResult train_alone(const ModelState& start, std::optional<OptimizerState> optimizer, std::size_t client,
                        std::uint32_t round) {
    const Chain chain = relay_chain_of_points();
    const auto name = "client-" + std::to_string(client);
    const Dataset data = points(10 + 7 * client, client + 1);
    TrainingBatches batches(data, 4, {.seed = relay_seed, .round = round, .node = node_key(name)});
    auto result =
        make_trainer()->train({.program = *compile_flow("local-epochs", {.chain = chain, .cell = whole_chain(chain)}),
                               .chain = chain,
                               .start = start,
                               .optimizer = *parse_optimizer("sgd learning_rate=0.1 momentum=0.9"),
                               .optimizer_state = std::move(optimizer),
                               .batch = 4,
                               .local_epochs = 2,
                               .draws = {.seed = relay_seed, .round = round, .node = node_key(name)}},
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

/// One batch of a client's, as if it had no others.
struct OneBatch : TrainerIo {
    OneBatch(TrainingBatches& of, const BatchPlace& at) : all(of), place(at) {}
    std::uint64_t examples() const override { return place.rows; }
    Status load(const BatchPlace&, std::span<float> features, std::span<std::int64_t> labels) override {
        return all.load(place, features, labels);
    }
    TrainingBatches& all;
    BatchPlace place;
};

/// A client's batches in their order, each as a place in its data.
struct OwnData {
    OwnData(std::size_t client, std::uint32_t round)
        : data(points(10 + 7 * client, client + 1)),
          batches(data, 4, {.seed = relay_seed, .round = round, .node = node_key("client-" + std::to_string(client))}) {
    }
    [[nodiscard]] std::size_t count() const { return (data.size() + 3) / 4; }
    [[nodiscard]] OneBatch at(std::uint64_t epoch, std::uint64_t batch) {
        return {batches, {epoch, batch, 4 * batch, std::min<std::uint64_t>(4, data.size() - 4 * batch)}};
    }
    Dataset data;
    TrainingBatches batches;
};

/// Parameters and their momentum.
struct Weights {
    std::vector<float> values, momentum;
};

/// One step of the whole model.
void step(Weights& weights, OneBatch batch) {
    const Chain chain = relay_chain_of_points();
    ModelState start = initial_model(chain, relay_seed);
    start.trainable.values = weights.values;
    OptimizerState optimizer{std::vector<std::uint64_t>(chain.layer_count(), 1), {weights.momentum}};
    auto result =
        make_trainer()->train({.program = *compile_flow("local-epochs", {.chain = chain, .cell = whole_chain(chain)}),
                               .chain = chain,
                               .start = start,
                               .optimizer = *parse_optimizer("sgd learning_rate=0.1 momentum=0.9"),
                               .optimizer_state = std::move(optimizer)},
                              batch);
    REQUIRE(result);
    weights = {result->end.trainable.values, result->optimizer_state.moments.front()};
}

/// The first n of one and what follows of another.
Weights joined_relays(const Weights& first, const Weights& rest, std::size_t n) {
    const auto at = static_cast<std::ptrdiff_t>(n);
    Weights all = rest;
    std::copy_n(first.values.begin(), at, all.values.begin());
    std::copy_n(first.momentum.begin(), at, all.momentum.begin());
    return all;
}

std::size_t parameters_before(std::size_t cut) {
    return relay_chain_of_points().arena_range(ArenaKind::trainable, 0, cut).size();
}

Weights at_rest(const ModelState& model) {
    return {model.trainable.values, std::vector<float>(model.trainable.values.size())};
}

ModelState model_of(const RelaysPlayed& played, std::uint32_t round) {
    return *from_safetensors(relay_chain_of_points(), played.files.at(played.models.at(round)));
}

}  // namespace

TEST_CASE("split learning is training the whole model on one client after another, bit for bit", "[relays][property]") {
    for (const char* cut : {"1", "gelu", "dense:2", "gelu:2"}) {
        CAPTURE(cut);
        const auto played = play_relays("preset = \"split\"\ncut = \"" + std::string(cut) + "\"");
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
    const auto split = play_relays("preset = \"split\"\ncut = \"gelu\"");
    CHECK(play_relays("preset = \"gsfl\"\ncut = \"gelu\"\ngroups = 1").models == split.models);
    const auto splitfed = play_relays("preset = \"splitfed-v1\"\ncut = \"gelu\"");
    CHECK(play_relays("preset = \"gsfl\"\ncut = \"gelu\"\ngroups = 4").models == splitfed.models);
    CHECK(split.models != splitfed.models);
}

TEST_CASE("splitfed-v1 is every client's own training of the whole model, averaged by examples, bit for bit",
          "[relays][property]") {
    const auto played = play_relays("preset = \"splitfed-v1\"\ncut = \"gelu\"");
    for (std::uint32_t round = 1; round < played.models.size(); ++round) {
        std::vector<std::pair<std::vector<float>, std::uint64_t>> parts;
        for (std::size_t client = 0; client < relay_clients; ++client) {
            const auto alone = train_alone(model_of(played, round - 1), {}, client, round);
            parts.emplace_back(alone.end.trainable.values, 10 + 7 * client);
        }
        REQUIRE(model_of(played, round).trainable.values == mean(parts));
    }
}

TEST_CASE("splitfed-v2 is one sequence of all batches for the host's layers, and the mean of the clients' own, bit "
          "for bit",
          "[relays][property]") {
    const auto played = play_relays("preset = \"splitfed-v2\"\ncut = \"gelu\"");
    const std::size_t n = parameters_before(2);
    for (std::uint32_t round = 1; round < played.models.size(); ++round) {
        Weights shared = at_rest(model_of(played, round - 1));
        std::vector<Weights> own(relay_clients, shared);
        std::vector<std::unique_ptr<OwnData>> data;
        for (std::size_t client = 0; client < relay_clients; ++client) {
            data.push_back(std::make_unique<OwnData>(client, round));
        }
        for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
            for (std::uint64_t batch = 0; batch < data.back()->count(); ++batch) {
                for (std::size_t client = 0; client < relay_clients; ++client) {
                    if (batch < data[client]->count()) {
                        Weights all = joined_relays(own[client], shared, n);
                        step(all, data[client]->at(epoch, batch));
                        own[client] = shared = all;
                    }
                }
            }
        }
        std::vector<std::pair<std::vector<float>, std::uint64_t>> parts;
        for (std::size_t client = 0; client < relay_clients; ++client) {
            parts.emplace_back(joined_relays(own[client], shared, n).values, 10 + 7 * client);
        }
        REQUIRE(model_of(played, round).trainable.values == mean(parts));
    }
    CHECK(played.groups.at(1).size() == relay_clients);
}

TEST_CASE("splitfed-v2 with one client is split learning, bit for bit, with an overlap too", "[relays][property]") {
    for (const std::string overlap : {"0", "2"}) {
        const auto more = "\ncut = \"gelu\"\noverlap = " + overlap;
        CHECK(play_relays("preset = \"splitfed-v2\"" + more, 3, 1).models ==
              play_relays("preset = \"split\"" + more, 3, 1).models);
    }
}

/// A client's turn in which batch b goes through the first n parameters as they were after b - overlap of its steps.
/// A step from momentum 0 leaves the gradient there, so the first part's own step is written out.
void stale_turn(Weights& model, std::size_t client, std::uint32_t round, std::size_t n, std::size_t overlap) {
    OwnData data(client, round);
    std::vector<Weights> after{model};  // so many steps of this turn
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
        for (std::uint64_t batch = 0; batch < data.count(); ++batch) {
            const std::size_t b = after.size() - 1;
            Weights seen = joined_relays(after[b < overlap ? 0 : b - overlap], model, n);
            std::fill_n(seen.momentum.begin(), n, 0.0f);
            step(seen, data.at(epoch, batch));
            for (std::size_t i = 0; i < n; ++i) {
                const float gradient = seen.momentum[i];
                seen.momentum[i] = 0.9f * model.momentum[i] + gradient;
                seen.values[i] = model.values[i] - 0.1f * seen.momentum[i];
            }
            model = seen;
            after.push_back(model);
        }
    }
}

TEST_CASE("with an overlap of N the forward and backward of a batch see the client's parameters of N steps before, bit "
          "for bit",
          "[relays][property]") {
    for (const std::size_t overlap : {1, 3, 16}) {  // 16: more than the batches of some turns
        CAPTURE(overlap);
        const auto words = "\noverlap = " + std::to_string(overlap);
        // Of two layers with parameters the second goes back through its weights: those of its forward.
        const auto played = play_relays("preset = \"split\"\ncut = \"gelu:2\"" + words);
        for (std::uint32_t round = 1; round < played.models.size(); ++round) {
            Weights model = at_rest(model_of(played, round - 1));
            for (const auto& client : played.groups.at(round)[0]) {
                stale_turn(model, number_of(client), round, parameters_before(4), overlap);
            }
            REQUIRE(model_of(played, round).trainable.values == model.values);
        }
        const auto split = play_relays("preset = \"split\"\ncut = \"1\"" + words).models;
        CHECK(play_relays("preset = \"u-shaped\"\ncut = [\"1\", \"4\"]" + words).models == split);
        CHECK(split != play_relays("preset = \"split\"\ncut = \"1\"").models);
    }
}

TEST_CASE("u-shaped training is split learning bit for bit, and its labels never travel", "[relays][property]") {
    const auto split = play_relays("preset = \"split\"\ncut = \"1\"");
    const auto shaped = play_relays("preset = \"u-shaped\"\ncut = [\"1\", \"4\"]");
    CHECK(shaped.models == split.models);
    const Chain chain = relay_chain_of_points();
    for (const std::uint32_t stage : {0u, 1u}) {
        const auto program =
            compile_flow("u-shaped", {.chain = chain, .cell = {.stage = stage}, .stages = 3, .cuts = {1, 4}});
        REQUIRE(program);
        CHECK(to_text(*program).find("labels") == std::string::npos);
    }
}

}  // namespace causeway::simulation
