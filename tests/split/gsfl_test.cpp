// Whole rounds of split training, all cells in one thread, against loops that know nothing of cells, flows or relays.
//
// One relay is split learning, and split learning with handed-on optimizer state is training on the clients' data one
// after another; relays of one client each are SplitFed, which is federated averaging of both segments.
#include <deque>
#include <map>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "common/random.h"
#include "model/initialise.h"
#include "model/trainer.h"
#include "split/flow.h"
#include "split/relay.h"

namespace causeway {
namespace {

const std::vector<std::string> gsfl_layers = {"flatten", "dense 12", "relu", "dense 8", "gelu", "dense 3"};
constexpr std::size_t width = 6;

struct ClientData : TrainerIo {
    std::vector<float> features;
    std::vector<std::int64_t> labels;
    std::map<Payload, std::deque<CellMessage>>* out = nullptr;
    std::map<Payload, std::deque<CellMessage>>* in = nullptr;

    std::uint64_t examples() const override { return labels.size(); }
    Status load(const BatchPlace& place, std::span<float> into, std::span<std::int64_t> into_labels) override {
        std::copy_n(features.begin() + static_cast<std::ptrdiff_t>(place.first * width), into.size(), into.begin());
        std::copy_n(labels.begin() + static_cast<std::ptrdiff_t>(place.first), into_labels.size(), into_labels.begin());
        return {};
    }
    Status send(std::uint32_t, CellMessage message) override {
        (*out)[message.payload].push_back(std::move(message));
        return {};
    }
    Result<std::optional<CellMessage>> receive(std::uint32_t, Payload payload) override {
        auto& queue = (*in)[payload];
        if (queue.empty()) {
            return std::optional<CellMessage>{};
        }
        std::optional<CellMessage> message = std::move(queue.front());
        queue.pop_front();
        return message;
    }
};

ClientData data_of(const std::string& name) {
    RandomStream random({.seed = 11, .purpose = "test-gsfl", .node = node_key(name)});
    ClientData data;
    const std::size_t examples = 9 + random.below(12);
    for (std::size_t i = 0; i < examples; ++i) {
        data.labels.push_back(static_cast<std::int64_t>(random.below(3)));
        for (std::size_t k = 0; k < width; ++k) {
            const double centre = k % 3 == static_cast<std::size_t>(data.labels.back()) ? 1.0 : 0.0;
            data.features.push_back(static_cast<float>(centre + 0.2 * random.normal()));
        }
    }
    return data;
}

/// What a node keeps of a segment: values and optimizer state.
struct Part {
    ModelState model;
    OptimizerState optimizer;
};

class Mesh {
public:
    explicit Mesh(std::uint32_t cut)
        : chain(*Chain::parse(gsfl_layers, {width}, "cross-entropy")),
          optimizer(*parse_optimizer("sgd learning_rate=0.1 momentum=0.9")),
          start(initial_model(chain, 5)),
          cut_(cut),
          trainer_(*Device::open("cpu")) {}

    TrainJob whole_job(const ModelState& from, std::optional<OptimizerState> state) const {
        const auto program = compile_flow("local-epochs", {.chain = chain, .cell = whole_chain(chain)});
        return {.program = *program,
                .chain = chain,
                .start = from,
                .optimizer = optimizer,
                .optimizer_state = std::move(state),
                .batch = 4,
                .local_epochs = 2};
    }
    TrainResult train_whole(const ModelState& from, std::optional<OptimizerState> state, const std::string& client) {
        ClientData data = data_of(client);
        auto result = trainer_.train(whole_job(from, std::move(state)), data);
        REQUIRE(result);
        return *std::move(result);
    }

    /// One round: every turn's client and host run in lockstep, hand-overs are kept by digest.
    std::vector<RelayResult> round(const Groups& groups) {
        Relay relay({.groups = groups, .hosts = std::vector<std::string>(groups.size(), "host")});
        while (relay.outcome() == Relay::Outcome::open) {
            const auto turns = relay.take_turns();
            REQUIRE_FALSE(turns.empty());
            for (const auto& turn : turns) {
                const auto end = run_turn(turn);
                REQUIRE(relay.handed_over(turn.group, turn.attempt, end, data_of(turn.client).examples()));
            }
        }
        return relay.results();
    }
    ModelState model_of(const RelayResult& result) const {
        ModelState whole = start;
        segment(0).paste(kept_.at(result.segments.client_segment).model, whole);
        segment(1).paste(kept_.at(result.segments.server_segment).model, whole);
        return whole;
    }

    Chain chain;
    OptimizerSpec optimizer;
    ModelState start;

private:
    Program program(std::uint32_t stage) const {
        return *compile_flow("split", {.chain = chain, .cell = {.stage = stage}, .stages = 2, .cuts = {cut_}});
    }
    Segment segment(std::uint32_t stage) const { return *Segment::make(chain, layers_of(program(stage))); }
    Part part(std::uint32_t stage, const Digest& digest) const {
        if (!digest.empty()) {
            return kept_.at(digest);
        }
        const Segment held = segment(stage);
        return {held.cut(start),
                OptimizerState::fresh(optimizer, chain.layer_count(), held.arena_size(ArenaKind::trainable))};
    }
    TrainJob job(std::uint32_t stage, const Digest& digest) const {
        Part from = part(stage, digest);
        TrainJob made = whole_job(from.model, from.optimizer);
        made.program = program(stage);
        made.segment = layers_of(made.program);
        return made;
    }
    Digest keep(TrainResult result) {
        const Digest digest = sha256(fmt::format("part {}", kept_.size()));
        kept_[digest] = {std::move(result.end), std::move(result.optimizer_state)};
        return digest;
    }
    Handover run_turn(const RelayTurn& turn) {
        std::map<Payload, std::deque<CellMessage>> up, down;
        ClientData client = data_of(turn.client), host;
        host.labels.resize(client.labels.size());  // the host knows how many, not which
        client.out = host.in = &up;
        client.in = host.out = &down;
        auto client_run = trainer_.begin(job(0, turn.start.client_segment), client);
        auto host_run = trainer_.begin(job(1, turn.start.server_segment), host);
        REQUIRE((client_run && host_run));
        for (bool over = false; !over;) {
            const auto a = client_run->advance();
            const auto b = host_run->advance();
            REQUIRE((a && b));
            over = *a == TrainingRun::State::finished && *b == TrainingRun::State::finished;
        }
        auto client_end = client_run->result();
        auto host_end = host_run->result();
        REQUIRE((client_end && host_end));
        const Digest client_digest = keep(*std::move(client_end));
        return {client_digest, keep(*std::move(host_end))};
    }

    std::uint32_t cut_;
    Trainer trainer_;
    std::map<Digest, Part> kept_;
};

}  // namespace

TEST_CASE("one relay is split learning: the whole model trained on one client after another, bit for bit",
          "[property][gsfl]") {
    for (std::uint32_t cut = 2; cut < gsfl_layers.size(); ++cut) {
        CAPTURE(cut);
        Mesh mesh(cut);
        ModelState model = mesh.start;
        std::optional<OptimizerState> state;
        for (const char* client : {"b", "a", "c"}) {
            TrainResult result = mesh.train_whole(model, std::move(state), client);
            model = result.end;
            state = result.optimizer_state;
        }
        const auto results = mesh.round({{"b", "a", "c"}});
        REQUIRE(results.size() == 1);
        REQUIRE(mesh.model_of(results[0]).trainable.values == model.trainable.values);
    }
}

TEST_CASE("relays of one client each are SplitFed: every client's own training of the whole model, bit for bit",
          "[property][gsfl]") {
    Mesh mesh(3);
    const auto results = mesh.round({{"a"}, {"b"}, {"c"}});
    REQUIRE(results.size() == 3);
    for (const auto& result : results) {
        const auto alone = mesh.train_whole(mesh.start, {}, result.clients.at(0));
        REQUIRE(mesh.model_of(result).trainable.values == alone.end.trainable.values);
        REQUIRE(result.examples == data_of(result.clients.at(0)).examples());
    }
}

TEST_CASE("a group's result does not depend on the other groups", "[property][gsfl]") {
    Mesh one(3), both(3);
    const auto alone = one.round({{"c", "d"}});
    const auto beside = both.round({{"a", "b", "e"}, {"c", "d"}});
    REQUIRE(both.model_of(beside.at(1)).trainable.values == one.model_of(alone.at(0)).trainable.values);
}

}  // namespace causeway
