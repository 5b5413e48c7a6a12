// Batch norms that stay with their clients: whole runs against plain loops over the same data that are written here.
#include <catch2/catch.hpp>

#include "common/random.h"
#include "compression/update_format.h"
#include "configs/evaluate.h"
#include "configs/reader.h"
#include "configs/workload.h"
#include "model/checkpoint.h"
#include "model/initialise.h"
#include "points.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t norms_rounds = 4;
constexpr std::size_t norms_clients = 3;

std::string norms_experiment(const std::string& rule, const std::string& where,
                             const std::string& sync = "quorum = \"50%\"") {
    auto text = points_experiment(norms_rounds,
                                  "optimizer = { kind = \"sgd\", learning_rate = 0.2, momentum = 0.5 }\nbatch = 6\n"
                                  "local_epochs = 2",
                                  "min_clients = 2\nrejoin = \"60s\"\n" + sync) +
                "\n[evaluation]\nwhere = \"" + where + "\"\n";
    if (where == "clients") {
        text += "holdout = \"20%\"\n";
    }
    const std::string layers = "layers = [\"dense 8\", \"gelu\", ";
    text.replace(text.find(layers), layers.size(),
                 "batch_norm = \"" + rule + "\"\nlayers = [\"dense 8\", \"batchnorm\", \"gelu\", ");
    return text;
}

struct NormsRun {
    std::vector<Json> events;
    Digest model;
    Bytes file;
    RunLog log;
};

NormsRun run_norms(const std::string& text, const std::vector<int>& delays = {1, 5, 9},
                   const std::function<void(World&)>& disturb = {}) {
    RealCast cast(norms_clients);
    auto options = cast.world();
    for (std::size_t i = 0; i < norms_clients; ++i) {
        options.clients[i].link.up.delay = options.clients[i].link.down.delay = std::chrono::milliseconds(delays[i]);
    }
    World world(std::move(options));
    world.start();
    REQUIRE(world.run_until([&] { return world.coordinator().machine()->members().members().size() == norms_clients; },
                            60s));
    world.submit(text);
    world.request("experiment.watch", Json::object().set("experiment", 1).set("from", 1));
    if (disturb) {
        disturb(world);
    }
    REQUIRE(world.run_until([&] { return world.over(1); }, 1h));
    world.run_for(1s);
    INFO(world.reason(1));
    REQUIRE(world.state(1) == "succeeded");
    REQUIRE(world.broken_rules().empty());
    return {world.events(), world.last_model(1), *cast.coordinator.read_model(world.last_model(1)),
            world.coordinator().store().log(1)};
}

/// The values of one arena that are exchanged so, in order.
std::vector<float> picked(const Chain& chain, const ModelState& state, ArenaKind kind, Exchange exchange) {
    std::vector<float> values;
    for (const TensorInfo& tensor : chain.table().tensors) {
        if (tensor.arena == kind && tensor.exchange == exchange) {
            const auto view = state.arena(kind).view(tensor);
            values.insert(values.end(), view.begin(), view.end());
        }
    }
    return values;
}

/// What the run is by definition: own[i] is a client's model with its own norms in it.
struct NormsLoop {
    Chain chain;
    ModelState shared;
    std::vector<ModelState> own;
    std::vector<Dataset> held_out;
};

void copy_tensors(const Chain& chain, Exchange exchange, const ModelState& from, ModelState& into) {
    for (const TensorInfo& tensor : chain.table().tensors) {
        if (tensor.exchange == exchange) {
            std::ranges::copy(from.arena(tensor.arena).view(tensor), into.arena(tensor.arena).view(tensor).begin());
        }
    }
}

/// A mean in long double, weighted by examples: of a handful of values it rounds as the exact one.
void average(const Chain& chain, const std::vector<ModelState>& ends, const std::vector<std::size_t>& weights,
             ModelState& shared) {
    for (const TensorInfo& tensor : chain.table().tensors) {
        for (std::uint64_t i = 0; tensor.exchange == Exchange::shared && i < tensor.range().size(); ++i) {
            long double sum = 0, weight = 0;
            for (std::size_t k = 0; k < ends.size(); ++k) {
                sum += static_cast<long double>(weights[k]) *
                       static_cast<long double>(ends[k].arena(tensor.arena).view(tensor)[i]);
                weight += static_cast<long double>(weights[k]);
            }
            shared.arena(tensor.arena).view(tensor)[i] = static_cast<float>(sum / weight);
        }
    }
}

NormsLoop by_hand(const std::string& text) {
    const auto config = read_experiment(text, "norms.toml");
    REQUIRE(config.has_value());
    const auto chain = chain_of(*config);
    REQUIRE(chain.has_value());
    const auto texts = work_texts(*config);
    REQUIRE(texts.has_value());
    NormsLoop loop{*chain, initial_model(*chain, config->experiment.seed), {}, {}};
    std::vector<Dataset> parts;
    for (std::size_t k = 0; k < norms_clients; ++k) {
        DatasetFile file{.train = points(10 + 7 * k, k + 1), .test = {}, .digest = {}};
        REQUIRE(prepare_examples(file, data_options_of(*config), config->experiment.seed).has_value());
        parts.push_back(file.train);
        loop.held_out.push_back(file.test.value_or(Dataset{}));
        loop.own.push_back(loop.shared);
    }
    const auto trainer = make_trainer();
    for (std::uint32_t round = 1; round <= norms_rounds; ++round) {
        std::vector<std::size_t> weights;
        for (std::size_t k = 0; k < norms_clients; ++k) {
            copy_tensors(*chain, Exchange::shared, loop.shared, loop.own[k]);
            const BatchKey key{
                .seed = config->experiment.seed, .round = round, .node = node_key("client-" + std::to_string(k))};
            TrainJob job{.program = *parse_program(texts->program),
                         .chain = *chain,
                         .start = loop.own[k],
                         .optimizer = *optimizer_of(*config)};
            job.batch = config->train.batch;
            job.local_epochs = config->train.local_epochs;
            job.draws = {.seed = key.seed, .round = round, .node = key.node};
            TrainingBatches batches(parts[k], job.batch, key);
            auto result = trainer->train(std::move(job), batches);
            REQUIRE(result.has_value());
            loop.own[k] = std::move(result->end);
            weights.push_back(parts[k].size());
        }
        average(*chain, loop.own, weights, loop.shared);
    }
    return loop;
}

const Json& last_norms_round(const NormsRun& run_norms) {
    REQUIRE(run_norms.events.size() >= 2);
    return run_norms.events[run_norms.events.size() - 2];
}

}  // namespace

TEST_CASE("norms that stay: the run is a plain loop in which each client keeps its own, bit for bit", "[paper][sim]") {
    const std::string rule = GENERATE("local", "average", "group");
    CAPTURE(rule);
    const auto text = norms_experiment(rule, "none");
    const auto loop = by_hand(text);
    const auto whole = run_norms(text);
    CHECK(whole.model == model_digest(loop.chain, loop.shared));
    const auto saved = load_safetensors(whole.file);
    REQUIRE(saved.has_value());
    const auto start = initial_model(loop.chain, 11);
    for (const auto kind : {ArenaKind::trainable, ArenaKind::buffers}) {
        const auto own = picked(loop.chain, saved->state, kind, Exchange::local);
        CHECK(own.size() == (rule == "local" ? 16u : 0u));
        CHECK(own == picked(loop.chain, start, kind, Exchange::local));  // nobody's norms came to the coordinator
    }
    CHECK((loop.chain.architecture().find("groupnorm 2") != std::string::npos) == (rule == "group"));
}

TEST_CASE("norms that stay: clients evaluate with their own, whoever is quick", "[sim]") {
    const auto text = norms_experiment("local", "clients");
    const auto loop = by_hand(text);
    double correct = 0, examples = 0;
    for (std::size_t k = 0; k < norms_clients; ++k) {
        auto state = loop.own[k];
        copy_tensors(loop.chain, Exchange::shared, loop.shared, state);
        const auto figures = evaluate_dataset(*make_trainer(), loop.chain, state, loop.held_out[k]);
        REQUIRE(figures.has_value());
        correct += figures->value("accuracy") * static_cast<double>(figures->examples);
        examples += static_cast<double>(figures->examples);
    }
    const auto first = run_norms(text);
    CHECK(first.model == model_digest(loop.chain, loop.shared));
    CHECK(last_norms_round(first)["accuracy"].number() == Approx(correct / examples));
    for (const std::vector<int>& delays : {std::vector{9, 5, 1}, std::vector{200, 1, 50}}) {
        const auto other = run_norms(text, delays);
        CHECK(other.model == first.model);
        REQUIRE(other.events.size() == first.events.size());
        for (std::size_t i = 0; i < first.events.size(); ++i) {
            CHECK(other.events[i]["evaluated_by_clients"].dump() == first.events[i]["evaluated_by_clients"].dump());
        }
    }
}

TEST_CASE("norms that stay: a client that is killed goes on with its own, and a replay comes to the same", "[sim]") {
    const auto text = norms_experiment("local", "none");
    const auto whole = run_norms(text);
    for (const std::uint32_t after : {1u, 2u, 3u}) {
        const auto disturbed = run_norms(text, {1, 5, 9}, [&](World& world) {
            REQUIRE(world.run_until([&] { return world.rounds(1) >= after; }, 1h));
            world.crash_client(2, 3s);
        });
        CHECK(disturbed.model == whole.model);
    }
    const auto dropped = run_norms(norms_experiment("local", "none", "quorum = 2\nstraggler_deadline = \"1s\""),
                                   {1, 5, 9}, [](World& world) {
                                       REQUIRE(world.run_until([&] { return world.rounds(1) >= 1; }, 1h));
                                       world.crash_client(2, 2s);
                                   });
    CHECK(dropped.model != whole.model);
    for (const NormsRun* run_norms : {&whole, &dropped}) {
        RealCast cast(norms_clients);
        const auto replayed =
            replay(run_norms->log, cast.coordinator, [&](const std::string& node) { return cast.find(node); }, {});
        REQUIRE(replayed.has_value());
        CHECK(replayed->back().model == run_norms->model);
        CHECK(std::ranges::all_of(*replayed, [](const auto& round) { return round.same(); }));
    }
}

TEST_CASE("norms that stay are in no update, and one with them is refused", "[sim]") {
    RealCast cast(norms_clients);
    const auto config = *read_experiment(norms_experiment("local", "none"), "norms.toml");
    const auto chain = *chain_of(config);
    const auto wanted = exchanged_ranges(chain.table());
    const auto state = initial_model(chain, 11);
    const auto update = make_update(chain.table(), wanted, values_of(state));
    for (const auto& part : update.parts) {
        CHECK(part.arena == ArenaKind::trainable);  // the only buffers are the norm's
        CHECK(chain.table().at(part.arena, part.ranges.ranges().front().begin)->exchange == Exchange::shared);
    }
    const auto codec = *parse_codec("dense");
    const RoundRules rules{.codec = codec, .aggregator = *parse_aggregator("mean", {})};
    const RoundInput input(chain, rules, 1, state, model_digest(chain, state));
    const auto judged = [&](const ArenaRanges& ranges) {
        const auto bytes = encode_update(codec, make_update(chain.table(), ranges, values_of(state)));
        HeldUpdate held{.round = 1, .digest = sha256(bytes), .bytes = bytes.size(), .weight = 3};
        held.start_model = model_digest(chain, state);
        const auto checked = input.check("client-0", held, bytes);
        return checked ? "" : checked.error().code;
    };
    CHECK(judged(wanted).empty());
    CHECK_FALSE(judged({RangeSet::all(chain.table().arena_size(ArenaKind::trainable)),
                        RangeSet::all(chain.table().arena_size(ArenaKind::buffers)), RangeSet{}})
                    .empty());
}

}  // namespace causeway::simulation
