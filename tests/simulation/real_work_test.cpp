// The papers' sentences about federated averaging, with the real model, trainer and sums in the virtual world, against
// plain loops over the same data written here.
#include <cmath>

#include <catch2/catch.hpp>

#include "configs/canonical.h"
#include "configs/reader.h"
#include "model/checkpoint.h"
#include "model/initialise.h"
#include "points.h"
#include "split/flow.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t real_rounds = 6;

std::string experiment_text(std::size_t clients, const std::string& train) {
    return R"(
[experiment]
name = "paper"
seed = 11
rounds = )" +
           std::to_string(real_rounds) + R"(
[data]
dataset = "points"
label = "last"
shape = [5]
[model]
layers = ["dense 8", "gelu", "dense 3"]
[train]
)" + train +
           R"(
[regime]
preset = "fedavg"
[sync]
quorum = "100%"
min_clients = )" +
           std::to_string(clients) + "\n";
}

const std::string full_batch = R"(optimizer = { kind = "sgd", learning_rate = 0.2 }
batch = "full"
local_epochs = 1)";

Dataset joined_parts(const std::vector<Dataset>& parts) {
    auto all = parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i) {
        all.features.insert(all.features.end(), parts[i].features.begin(), parts[i].features.end());
        all.labels.insert(all.labels.end(), parts[i].labels.begin(), parts[i].labels.end());
    }
    return all;
}

/// The last model of a federated run over these parts; `start` is a file that the coordinator calls "start".
ModelState federated(const std::vector<Dataset>& parts, const std::string& text, const Bytes& start = {}) {
    const auto trainer = make_trainer();
    RealCoordinatorWork coordinator(trainer, std::nullopt);
    std::vector<std::unique_ptr<RealClientWork>> works;
    WorldOptions options;
    options.work = &coordinator;
    if (!start.empty()) {
        coordinator.add_model("start", start);
        options.coordinator.models.emplace("start", *describe_named_model(start));
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        works.push_back(std::make_unique<RealClientWork>(trainer, "client-" + std::to_string(i), parts[i]));
        options.clients.push_back({.name = "client-" + std::to_string(i),
                                   .datasets = {works.back()->declaration()},
                                   .work = works.back().get()});
    }
    World world(std::move(options));
    world.start();
    REQUIRE(world.run_until([&] { return world.coordinator().machine()->members().members().size() == parts.size(); },
                            60s));
    world.submit(text);
    REQUIRE(world.run_until([&] { return world.over(1); }, 3600s));
    INFO(world.reason(1));
    REQUIRE(world.state(1) == "succeeded");
    REQUIRE(world.rounds(1) == real_rounds);
    const auto bytes = coordinator.read_model(world.last_model(1));
    REQUIRE(bytes.has_value());
    return load_safetensors(*bytes)->state;
}

/// `steps` calls of the trainer over all examples in one place, one epoch each.
ModelState centralised(const Dataset& dataset, const std::string& text, std::uint32_t steps) {
    const auto experiment = read_experiment(text, "paper.toml");
    REQUIRE(experiment.has_value());
    const auto chain = Chain::parse(experiment->model.layers, experiment->data.shape, experiment->model.loss);
    REQUIRE(chain.has_value());
    auto state = initial_model(*chain, experiment->experiment.seed);
    const auto trainer = make_trainer();
    for (std::uint32_t step = 0; step < steps; ++step) {
        TrainJob job{.program = *compile_flow("local-epochs", {.chain = *chain, .cell = whole_chain(*chain)}),
                     .chain = *chain,
                     .start = std::move(state),
                     .optimizer = *parse_optimizer(experiment->train.optimizer.text())};
        job.batch = experiment->train.batch;
        TrainingBatches batches(dataset, job.batch, {});
        auto result = trainer->train(job, batches);
        REQUIRE(result.has_value());
        state = std::move(result->end);
    }
    return state;
}

}  // namespace

TEST_CASE("a run from a file that holds the seed's own initial model is the run from the seed; from another it is not",
          "[sim]") {
    const std::vector<Dataset> parts{points(40, 1), points(25, 2)};
    const auto text = experiment_text(2, full_batch);
    auto from_file = text;
    from_file.insert(from_file.find("[train]"), "init_from = \"start\"\n");
    const auto chain = *Chain::parse({"dense 8", "gelu", "dense 3"}, {5}, "cross-entropy");
    const auto plain = federated(parts, text);
    CHECK(federated(parts, from_file, to_safetensors(chain, initial_model(chain, 11))) == plain);
    CHECK_FALSE(federated(parts, from_file, to_safetensors(chain, initial_model(chain, 12))) == plain);
}

TEST_CASE("FedAvg with one client, one epoch and the full batch is plain SGD, bit for bit", "[paper][sim]") {
    const auto part = points(60, 0);
    const auto text = experiment_text(1, full_batch);
    CHECK(federated({part}, text).trainable.values == centralised(part, text, real_rounds).trainable.values);
}

TEST_CASE("FedAvg with E = 1 and full batches is FedSGD: K clients equal the centralised step", "[paper][sim]") {
    const std::vector<Dataset> parts = {points(20, 1), points(33, 2), points(7, 3)};
    const auto text = experiment_text(3, full_batch);
    const auto together = federated(parts, text).trainable.values;
    const auto alone = centralised(joined_parts(parts), text, real_rounds).trainable.values;
    REQUIRE(together.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
        REQUIRE(std::abs(together[i] - alone[i]) <= 1e-6f);
    }
}

TEST_CASE("optimizer_state = keep carries the momentum over a sync, reset forgets it", "[sim]") {
    const auto part = points(40, 4);
    const auto text = [&](const std::string& rule) {
        return experiment_text(1, R"(optimizer = { kind = "sgd", learning_rate = 0.1, momentum = 0.9 }
batch = "full"
local_epochs = 1
optimizer_state = ")" + rule + "\"");
    };
    const auto kept = federated({part}, text("keep")).trainable.values;
    const auto reset = federated({part}, text("reset")).trainable.values;
    CHECK(kept != reset);
    CHECK(reset == centralised(part, text("reset"), real_rounds).trainable.values);

    // One client that keeps its state is one long training: the epochs of one job.
    const auto experiment = read_experiment(text("keep"), "paper.toml");
    REQUIRE(experiment.has_value());
    const auto chain = Chain::parse(experiment->model.layers, experiment->data.shape, experiment->model.loss);
    TrainJob job{.program = *compile_flow("local-epochs", {.chain = *chain, .cell = whole_chain(*chain)}),
                 .chain = *chain,
                 .start = initial_model(*chain, 11),
                 .optimizer = *parse_optimizer(experiment->train.optimizer.text())};
    job.local_epochs = real_rounds;
    TrainingBatches batches(part, 0, {});
    const auto whole = make_trainer()->train(job, batches);
    REQUIRE(whole.has_value());
    CHECK(kept == whole->end.trainable.values);
}

TEST_CASE("clients without examples train nothing, and the round fails with the model as it was", "[sim]") {
    const auto trainer = make_trainer();
    RealCoordinatorWork coordinator(trainer, std::nullopt);
    auto empty = points(3, 6);
    empty.features.clear();
    empty.labels.clear();
    RealClientWork work(trainer, "client-0", empty);
    WorldOptions options;
    options.work = &coordinator;
    options.clients.push_back({.name = "client-0", .datasets = {work.declaration()}, .work = &work});
    World world(std::move(options));
    world.start();
    REQUIRE(world.run_until([&] { return !world.coordinator().machine()->members().members().empty(); }, 60s));
    world.submit(experiment_text(1, full_batch));
    REQUIRE(world.run_until([&] { return world.over(1); }, 3600s));
    CHECK(world.state(1) == "failed");
    CHECK(world.reason(1).find("no_examples") != std::string::npos);
    CHECK(world.rounds(1) == 0);
}

}  // namespace causeway::simulation
