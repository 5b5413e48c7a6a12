// Noise on smashed data: a whole run against a loop that adds it by itself, and the same run again from its log.
//
// The loop knows two programs and a queue, no turns and no streams: between them it adds one normal number to each
// value, drawn as the documentation says.
#include <deque>

#include <catch2/catch.hpp>

#include "common/random.h"
#include "configs/batches.h"
#include "coordinator/decisions.h"
#include "model/checkpoint.h"
#include "model/segment.h"
#include "points.h"
#include "simulation/replay.h"
#include "split/flow.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t noise_seed = 11;  // of points_experiment
constexpr std::uint32_t batch = 4;
constexpr std::uint32_t epochs = 2;
constexpr std::uint32_t cut = 2;
constexpr std::size_t noise_clients = 3;

struct NoisePlayed {
    RunLog log;
    std::vector<ReplayedRound> replayed;
    std::vector<Bytes> models;
};

NoisePlayed play_noise(const std::string& regime) {
    RealCast cast(noise_clients, std::nullopt, 1);
    World world(cast.world());
    world.start();
    world.run_for(1s);
    world.submit(points_experiment(2,
                                   "optimizer = { kind = \"sgd\", learning_rate = 0.1 }\nbatch = 4\nlocal_epochs = 2",
                                   "quorum = \"100%\"\nmin_clients = 3\n[evaluation]\nwhere = \"none\"", regime));
    REQUIRE(world.run_until([&] { return world.over(1); }, 3600s));
    INFO(world.reason(1));
    REQUIRE(world.state(1) == "succeeded");
    NoisePlayed played{.log = world.log(1), .replayed = {}, .models = {}};
    auto again = replay(played.log, cast.coordinator, [&](const std::string& node) { return cast.find(node); });
    REQUIRE(again);
    played.replayed = *std::move(again);
    for (const auto& commit : played.log.commits) {
        played.models.push_back(*cast.coordinator.read_model(commit.model));
    }
    return played;
}

const Chain& noise_chain_of_points() {
    static const Chain chain = *Chain::parse({"dense 8", "gelu", "dense 6", "gelu", "dense 3"}, {5}, "cross-entropy");
    return chain;
}

/// One side of the loop: messages in queues, examples at the client's only.
struct NoiseCell : TrainerIo {
    TrainingBatches* batches = nullptr;
    std::uint64_t count = 0;
    std::deque<CellMessage> arrived;
    std::function<void(CellMessage)> hand_over;

    std::uint64_t examples() const override { return count; }
    Status load(const BatchPlace& place, std::span<float> features, std::span<std::int64_t> labels) override {
        return batches->load(place, features, labels);
    }
    Status send(std::uint32_t, CellMessage message) override {
        hand_over(std::move(message));
        return {};
    }
    Result<std::optional<CellMessage>> receive(std::uint32_t, Payload payload) override {
        const auto found = std::ranges::find(arrived, payload, &CellMessage::payload);
        if (found == arrived.end()) {
            return std::optional<CellMessage>();
        }
        auto message = std::optional(std::move(*found));
        arrived.erase(found);
        return message;
    }
};

/// Both segments of the model on one client's data, the client's values made noisy on their way.
void train_with_noise(ModelState& model, std::size_t client, std::uint32_t round, double scale) {
    const Chain& chain = noise_chain_of_points();
    const auto node = node_key("client-" + std::to_string(client));
    const Dataset data = points(10 + 7 * client, client + 1);
    TrainingBatches batches(data, batch, {.seed = noise_seed, .round = round, .node = node});
    const std::size_t in_an_epoch = (data.size() + batch - 1) / batch;
    NoiseCell cells[2];
    cells[0].batches = &batches;
    cells[0].count = cells[1].count = data.size();
    cells[1].hand_over = [&](CellMessage message) { cells[0].arrived.push_back(std::move(message)); };
    cells[0].hand_over = [&](CellMessage message) {
        const std::size_t wide = message.values.size() / message.rows;
        for (std::size_t row = 0; row < message.rows && message.payload == Payload::activations; ++row) {
            RandomStream random({.seed = noise_seed,
                                 .purpose = "smash-noise",
                                 .round = round,
                                 .node = node,
                                 .step = message.epoch * in_an_epoch + message.batch,
                                 .layer = row});
            for (std::size_t i = 0; i < wide; ++i) {
                auto& value = message.values[row * wide + i];
                value = static_cast<float>(value + scale * random.normal());
            }
        }
        cells[1].arrived.push_back(std::move(message));
    };
    auto trainer = make_trainer();
    std::vector<TrainingRun> runs;
    std::vector<Segment> segments;
    for (const std::uint32_t stage : {0u, 1u}) {
        const auto program =
            compile_flow("split", {.chain = chain, .cell = {.stage = stage}, .stages = 2, .cuts = {cut}});
        segments.push_back(*Segment::make(chain, layers_of(*program)));
        runs.push_back(*trainer->begin({.program = *program,
                                        .chain = chain,
                                        .segment = segments.back().layers(),
                                        .start = segments.back().cut(model),
                                        .optimizer = *parse_optimizer("sgd learning_rate=0.1"),
                                        .optimizer_state = {},
                                        .batch = batch,
                                        .local_epochs = epochs,
                                        .draws = {.seed = noise_seed, .round = round, .node = node}},
                                       cells[stage]));
    }
    bool over[2] = {};
    while (!over[0] || !over[1]) {
        for (const std::size_t stage : {0, 1}) {
            over[stage] = over[stage] || *runs[stage].advance() == TrainingRun::State::finished;
        }
    }
    for (const std::size_t stage : {0, 1}) {
        segments[stage].paste(runs[stage].result()->end, model);
    }
}

}  // namespace

TEST_CASE("noise of a relay is what the documentation says, bit for bit, and a replay draws it again",
          "[relays][noise]") {
    const auto played = play_noise("preset = \"split\"\ncut = \"gelu\"\nsmash_noise = 0.25");
    REQUIRE(played.replayed.size() == 3);
    for (const auto& round : played.replayed) {
        CHECK(round.same());
    }
    for (std::uint32_t round = 1; round < played.models.size(); ++round) {
        auto model = *from_safetensors(noise_chain_of_points(), played.models[round - 1]);
        for (const auto& decision : played.log.decisions) {
            if (decision.kind == "handover" && decision.round == round) {
                train_with_noise(model, static_cast<std::size_t>(decision.detail["node"].text().back() - '0'), round,
                                 0.25);
            }
        }
        REQUIRE(from_safetensors(noise_chain_of_points(), played.models[round])->trainable.values ==
                model.trainable.values);
    }
}

TEST_CASE("noise of no scale changes no bit, in any regime, and some changes all of them", "[relays][noise]") {
    for (const std::string regime : {"preset = \"gsfl\"\ncut = \"gelu\"\ngroups = 2",
                                     "preset = \"u-shaped\"\ncut = [\"1\", \"4\"]"}) {
        const auto plain = play_noise(regime);
        CHECK(play_noise(regime + "\nsmash_noise = 0").models == plain.models);
        const auto noisy = play_noise(regime + "\nsmash_noise = 0.1");
        CHECK(noisy.models.front() == plain.models.front());
        CHECK(noisy.models.back() != plain.models.back());
        CHECK(noisy.replayed.back().same());
    }
}

}  // namespace causeway::simulation
