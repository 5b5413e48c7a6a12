// Both sides of a turn against honest and hostile peers: what a node sends to another is examined like a stranger's.
#include <algorithm>
#include <deque>

#include <catch2/catch.hpp>

#include "client/early_messages.h"
#include "client/turn_work.h"
#include "model/initialise.h"
#include "split/flow.h"
#include "split/segment_file.h"
#include "tests/data/samples.h"

namespace causeway::node {
namespace {

constexpr std::uint32_t activations = 0, gradients = 1, labels = 2;

const Chain& chain() {
    static const Chain made = *Chain::parse({"flatten", "dense 6", "relu", "dense 3"}, {2, 2, 1}, "cross-entropy");
    return made;
}
const Dataset& examples() {
    static const Dataset made = random_dataset(10, 3, {2, 2, 1}, 5);
    return made;
}

Program turn_program_of(std::uint32_t stage) {
    return *compile_flow("split", {.chain = chain(), .cell = {.stage = stage}, .stages = 2, .cuts = {3}});
}
Segment segment_of(std::uint32_t stage) {
    return *Segment::make(chain(), layers_of(turn_program_of(stage)));
}
Bytes file_of(std::uint32_t stage) {
    return encode_segment(segment_of(stage), {segment_of(stage).cut(initial_model(chain(), 3)), {}});
}

Assign assign_of(std::uint32_t stage) {
    Assign assign;
    assign.lease = {1, 9, 1, 4};
    assign.dataset = "random";
    assign.architecture = chain().architecture();
    assign.program = to_text(turn_program_of(stage));
    assign.optimizer = "sgd learning_rate=0.1 momentum=0.9";
    assign.segment = to_text(segment_of(stage).layers());
    assign.cell = stage;
    assign.peers = {{1 - stage, stage == 0 ? "host" : "ann"}};
    assign.data_node = "ann";
    assign.examples = 10;
    assign.batch = 4;
    assign.model = sha256(file_of(stage));
    return assign;
}

/// One side, with what it sends in a queue.
struct SideBench {
    explicit SideBench(std::uint32_t side, Assign with) : stage(side), assign(std::move(with)) {
        TurnHooks hooks;
        hooks.send = [this](std::uint32_t cell, StreamData message) {
            CHECK(cell == 1 - stage);
            sent.push_back(std::move(message));
        };
        auto begun = TurnWork::begin(trainer, assign, file_of(stage), stage == 0 ? &examples() : nullptr, hooks);
        if (begun) {
            work = *std::move(begun);
        } else {
            error = begun.error();
        }
    }
    explicit SideBench(std::uint32_t side) : SideBench(side, assign_of(side)) {}

    /// What the other side would have said to it first.
    static std::deque<StreamData> honest() {
        SideBench client(0);
        REQUIRE(client.work->advance());
        return client.sent;
    }
    std::uint32_t stage;
    Assign assign;
    Trainer trainer{*Device::open("cpu")};
    std::deque<StreamData> sent;
    std::unique_ptr<TurnWork> work;
    std::optional<Error> error;
};

/// A host that has been told this comes to a named error.
std::string host_says(const std::deque<StreamData>& messages) {
    SideBench host(1);
    REQUIRE(host.work);
    for (const auto& message : messages) {
        if (const auto taken = host.work->deliver(message); !taken) {
            return taken.error().code;
        }
    }
    const auto state = host.work->advance();
    return state ? (*state == TurnWork::State::finished ? "finished" : "waits") : state.error().code;
}

}  // namespace

TEST_CASE("a client augments its examples in a turn, as it does when it trains a whole model", "[turn_work]") {
    const auto first_activations = [](const Assign& assign) {
        SideBench client(0, assign);
        REQUIRE(client.work);
        REQUIRE(client.work->advance());
        const auto found = std::ranges::find(client.sent, activations, &StreamData::kind);
        REQUIRE(found != client.sent.end());
        return found->payload;
    };
    auto flipped = assign_of(0);
    flipped.data_options = to_text(DataOptions{.shape = {2, 2, 1}, .augment = {*parse_augment("flip")}});
    auto plain = flipped;
    plain.data_options = to_text(DataOptions{.shape = {2, 2, 1}});
    CHECK(first_activations(plain) == first_activations(assign_of(0)));
    CHECK_FALSE(first_activations(flipped) == first_activations(plain));
}

TEST_CASE("two sides that speak to each other finish, each with its next segment", "[turn_work]") {
    SideBench client(0), host(1);
    REQUIRE((client.work && host.work));
    bool over[2] = {};
    for (int i = 0; i < 100 && !(over[0] && over[1]); ++i) {
        for (auto* side : {&client, &host}) {
            auto& other = side == &client ? host : client;
            while (!other.sent.empty()) {
                REQUIRE(side->work->deliver(other.sent.front()));
                other.sent.pop_front();
            }
            if (!over[side->stage]) {
                const auto state = side->work->advance();
                REQUIRE(state);
                over[side->stage] = *state == TurnWork::State::finished;
            }
        }
    }
    REQUIRE((over[0] && over[1]));
    for (auto* side : {&client, &host}) {
        const auto output = side->work->finish();
        REQUIRE(output);
        CHECK(output->held.digest == sha256(output->file));
        CHECK(output->held.digest != side->assign.model);
        CHECK(output->held.weight == 10);
        CHECK(output->held.start_model == side->assign.model);
        CHECK(output->held.metrics.stream_sent > 0);
        CHECK(decode_segment(segment_of(side->stage), *parse_optimizer(side->assign.optimizer), chain().layer_count(),
                             output->file));
    }
}

TEST_CASE("a side that has heard nothing waits, and says so", "[turn_work]") {
    CHECK(host_says({}) == "waits");
    CHECK(host_says(SideBench::honest()) == "waits");  // for the next batch
}

TEST_CASE("what comes from a cell that the turn does not name is refused", "[turn_work]") {
    auto messages = SideBench::honest();
    messages.front().cell = GENERATE(1u, 2u, UINT32_MAX);
    CHECK(host_says(messages) == "bad_stream_message");
}

TEST_CASE("a place in the program or a number of rows that is not due is a named error", "[turn_work]") {
    auto messages = SideBench::honest();
    const auto kind = GENERATE(activations, labels);
    for (auto& message : messages) {
        if (message.kind != kind) {
            continue;
        }
        SECTION("rows") {
            message.rows = 3;
        }
        SECTION("rows of a file's size") {
            message.rows = UINT64_MAX;
        }
        SECTION("batch") {
            message.batch = 1;
        }
        SECTION("epoch") {
            message.epoch = 7;
        }
        SECTION("microbatch") {
            message.microbatch = 1;
        }
    }
    const auto code = host_says(messages);
    CHECK((code == "wrong_rows" || code == "wrong_batch"));
}

TEST_CASE("values of a size that does not fit are a named error", "[turn_work]") {
    auto messages = SideBench::honest();
    const auto kind = GENERATE(activations, labels);
    const auto cut = GENERATE(as<std::size_t>{}, 0, 3, 8, 64);
    for (auto& message : messages) {
        if (message.kind == kind) {
            message.payload.resize(cut);
            message.total = cut;
        }
    }
    const auto code = host_says(messages);
    INFO(code);
    CHECK((code != "waits" && code != "finished"));
}

TEST_CASE("a total that is not the payload's is a named error", "[turn_work]") {
    auto messages = SideBench::honest();
    messages.front().total = UINT64_MAX;
    CHECK(host_says(messages) == "bad_stream_message");
}

TEST_CASE("labels of no class are a named error at the host", "[turn_work]") {
    auto messages = SideBench::honest();
    for (auto& message : messages) {
        if (message.kind == labels) {
            const std::int64_t label = GENERATE(as<std::int64_t>{}, 3, -1, INT64_MIN, INT64_MAX);
            std::ranges::copy(std::as_bytes(std::span(&label, 1)), message.payload.begin());
        }
    }
    const auto code = host_says(messages);
    INFO(code);
    CHECK((code != "waits" && code != "finished"));
}

TEST_CASE("more messages than any program leaves waiting are a flood", "[turn_work]") {
    SideBench host(1);
    const auto messages = SideBench::honest();
    int taken = 0;
    while (taken < 1000 && host.work->deliver(messages.front())) {
        ++taken;
    }
    CHECK(taken == 64);
    CHECK(host.work->deliver(messages.front()).error().code == "stream_flood");
}

TEST_CASE("messages of more bytes than the largest one may have are a flood, however few", "[turn_work]") {
    SideBench host(1);
    auto message = SideBench::honest().front();
    message.payload = Bytes(most_waiting_bytes / 2);
    REQUIRE(host.work->deliver(message));
    REQUIRE(host.work->deliver(message));
    message.payload.resize(1);
    CHECK(host.work->deliver(message).error().code == "stream_flood");
}

namespace {

/// A host that works for ann and bob at once.
Assign assign_of_both() {
    auto assign = assign_of(1);
    assign.program =
        to_text(*compile_flow("batch-major", {.chain = chain(), .cell = {.stage = 1}, .stages = 2, .cuts = {3}}));
    assign.peers = {{2, "ann", 10}, {3, "bob", 10}};
    assign.data_node = "";
    assign.examples = 20;
    return assign;
}

/// What a client says first, as one of a host that has several.
std::deque<StreamData> honest_as(std::uint32_t cell) {
    auto messages = SideBench::honest();
    for (auto& message : messages) {
        message.cell = cell;
    }
    return messages;
}

}  // namespace

TEST_CASE("a host of several clients takes their batches in the order of its peers, whoever is first", "[turn_work]") {
    Trainer trainer(*Device::open("cpu"));
    std::vector<std::uint32_t> answered;
    TurnHooks hooks;
    hooks.send = [&](std::uint32_t cell, const StreamData&) { answered.push_back(cell); };
    auto begun = TurnWork::begin(trainer, assign_of_both(), file_of(1), nullptr, hooks);
    REQUIRE(begun);
    auto& work = **begun;
    for (const auto& message : honest_as(3)) {
        REQUIRE(work.deliver(message));
    }
    REQUIRE(*work.advance() == TurnWork::State::waiting);
    CHECK(answered.empty());
    auto of_ann = honest_as(2);
    SECTION("honest") {
        for (const auto& message : of_ann) {
            REQUIRE(work.deliver(message));
        }
        REQUIRE(*work.advance() == TurnWork::State::waiting);  // for the second batches
        CHECK(answered == std::vector<std::uint32_t>{2, 3});
    }
    SECTION("values that are not finite are refused, and the error names whose they are") {
        for (auto& message : of_ann) {
            if (message.kind == activations) {
                std::ranges::fill(message.payload, std::byte{0xff});
            }
            REQUIRE(work.deliver(message));
        }
        const auto state = work.advance();
        REQUIRE_FALSE(state);
        CHECK(state.error().code == "not_finite");
        CHECK(work.blamed(state.error()) == "ann");
    }
}

TEST_CASE("a host's clients are cells that count up, with the examples that it has in all", "[turn_work]") {
    auto assign = assign_of_both();
    CHECK(check_cell(assign, {}));
    SECTION("a gap") {
        assign.peers[1].cell = 4;
    }
    SECTION("other examples") {
        assign.peers[1].examples = 11;
    }
    SECTION("two peers of a program for one") {
        assign.program = assign_of(1).program;
    }
    CHECK(check_cell(assign, {}).error().code == "bad_cell");
}

TEST_CASE("gradients for what was not sent do not move a client", "[turn_work]") {
    SideBench client(0);
    StreamData early{.lease = client.assign.lease, .cell = 1, .kind = gradients, .rows = 4};
    early.payload.resize(3);
    early.total = 3;
    REQUIRE(client.work->deliver(early));
    const auto state = client.work->advance();
    REQUIRE_FALSE(state);
    CHECK(state.error().code == "bad_stream_message");
}

TEST_CASE("a client that has not as many examples as it declared does not begin", "[turn_work]") {
    auto assign = assign_of(0);
    assign.examples = 11;
    const SideBench client(0, assign);
    REQUIRE(client.error);
    CHECK(client.error->code == "examples_changed");
}

TEST_CASE("an assignment whose segment is not the program's, or whose file is not the segment's, does not begin",
          "[turn_work]") {
    auto assign = assign_of(1);
    SECTION("other layers") {
        assign.segment = assign_of(0).segment;
    }
    SECTION("no layers") {
        assign.segment = "[0, 99)";
    }
    SECTION("no program") {
        assign.program = "jump";
    }
    const SideBench host(1, assign);
    REQUIRE(host.error);
    CHECK_FALSE(host.error->code.empty());
}

TEST_CASE("a cell without peers or examples is refused before anything is fetched", "[turn_work]") {
    auto assign = assign_of(1);
    CHECK(check_cell(assign, Status()));
    SECTION("peers") {
        assign.peers.clear();
    }
    SECTION("no examples") {
        assign.examples = 0;
    }
    SECTION("too many") {
        assign.examples = UINT64_MAX;
    }
    CHECK(check_cell(assign, Status()).error().code == "bad_cell");
}

}  // namespace causeway::node
