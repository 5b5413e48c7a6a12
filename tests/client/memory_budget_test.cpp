// What a node may use: groups of all experiments count, repeated turns do not count twice, refusals have the numbers.
#include <catch2/catch.hpp>

#include "client/memory_budget.h"
#include "client/node_trainer.h"

namespace causeway::node {
namespace {

using Catch::Contains;

/// What a node answers to the turn of layers [2, 3), a dense layer of 8 values to 4: 144 bytes of parameters.
std::string answer_of(NodeTrainer& trainer, std::uint64_t experiment, std::uint32_t group,
                      const std::string& program = "none") {
    const auto chain = *Chain::parse({"dense 8", "relu", "dense 4"}, {5}, "cross-entropy");
    Assign assign;
    assign.lease = {1, experiment, 1, 1};
    assign.experiment_name = "points";
    assign.architecture = chain.architecture();
    assign.optimizer = "sgd learning_rate=0.1 momentum=0.9";
    assign.program = program;  // looked at after the memory
    assign.segment = "[2, 3)";
    assign.group = group;
    assign.data_node = "ann";
    assign.examples = 40;
    assign.batch = 10;
    BoundedQueue<std::string> answers(1);
    trainer.run_turn(assign, {}, {}, {}, [&](const TurnEnd& end) {
        answers.push(end.output ? "" : end.output.error().code + ": " + end.output.error().message);
    });
    return answers.pop().value_or("");
}

}  // namespace

TEST_CASE("a node counts the groups of all experiments, and refuses a turn before it begins", "[memory]") {
    constexpr std::uint64_t group = 144 * 5 + 2 * 4 * 10 * (8 + 4);  // with one moment; ten rows
    constexpr std::uint64_t once = 4 * 2 * 144;                      // segment and moment as they come and go
    NodeTrainer trainer("host-1", *Device::open("cpu"), {}, {.memory = 2 * group + once + 10, .slow = 1});
    CHECK_THAT(answer_of(trainer, 1, 0), !Contains("does_not_fit"));
    CHECK_THAT(answer_of(trainer, 2, 0), !Contains("does_not_fit"));
    CHECK_THAT(answer_of(trainer, 1, 1),
               Contains("does_not_fit: layers [2, 3) of points: 1 group of 1.68 KB") && Contains("1.15 KB once") &&
                   Contains("may use 4.52 KB"));
    trainer.forget(2);
    CHECK_THAT(answer_of(trainer, 1, 1), !Contains("does_not_fit"));
    NodeTrainer narrow("host-1", *Device::open("cpu"), {}, {.memory = group + once - 1, .slow = 1});
    CHECK_THAT(answer_of(narrow, 1, 0), Contains("does_not_fit"));
}

TEST_CASE("batches that an overlap puts away need their values and the parameters of their time", "[memory]") {
    constexpr std::uint64_t group = 144 * 5 + 2 * 4 * 10 * (8 + 4);
    constexpr std::uint64_t once = 4 * 2 * 144;
    constexpr std::uint64_t each = 4 * 10 * (8 + 4) + 144;
    const std::string overlapped = "repeat epochs {\n    repeat batches {\n        stash 2\n    }\n}\n";
    NodeTrainer narrow("ann", *Device::open("cpu"), {}, {.memory = group + once + 2 * each - 1, .slow = 1});
    CHECK_THAT(answer_of(narrow, 1, 0), !Contains("does_not_fit"));
    CHECK_THAT(answer_of(narrow, 1, 0, overlapped), Contains("does_not_fit") && Contains("1.25 KB for batches that"));
    NodeTrainer wide("ann", *Device::open("cpu"), {}, {.memory = group + once + 2 * each, .slow = 1});
    CHECK_THAT(answer_of(wide, 1, 0, overlapped), !Contains("does_not_fit"));
}

TEST_CASE("groups of several experiments share one limit until their experiment is over", "[memory]") {
    MemoryBudget budget(1000, {});
    REQUIRE(budget.take({.experiment = 1, .round = 1, .group = 0}, 400, 0, "first"));
    REQUIRE(budget.take({.experiment = 2, .round = 5, .group = 0}, 400, 0, "second"));
    const auto third = budget.take({.experiment = 1, .round = 1, .group = 1}, 400, 0, "1 group of 400 B");
    REQUIRE_FALSE(third);
    CHECK(third.error().code == "does_not_fit");
    CHECK(third.error().kind == ErrorKind::overloaded);
    CHECK_THAT(third.error().message,
               Contains("1 group of 400 B") && Contains("1.00 KB") && Contains("800 B") && Contains("join --memory"));
    budget.forget(2);
    CHECK(budget.take({.experiment = 1, .round = 1, .group = 1}, 400, 0, "third"));
}

TEST_CASE("what a turn needs while it begins or ends is asked for and not kept", "[memory]") {
    MemoryBudget budget(1000, {});
    REQUIRE(budget.take({.experiment = 1, .round = 1, .group = 0}, 400, 200, "first"));
    CHECK_FALSE(budget.take({.experiment = 1, .round = 1, .group = 1}, 401, 200, "second"));
    CHECK(budget.take({.experiment = 1, .round = 1, .group = 1}, 400, 200, "second"));
}

TEST_CASE("a group's next turn takes the place of its last one, and a next round that of the round before",
          "[memory]") {
    MemoryBudget budget(1000, {});
    for (std::uint32_t turn = 0; turn < 5; ++turn) {
        REQUIRE(budget.take({.experiment = 1, .round = 1, .group = 0}, 900, 0, "turn"));
    }
    REQUIRE_FALSE(budget.take({.experiment = 1, .round = 1, .group = 1}, 900, 0, "beside it"));
    CHECK(budget.take({.experiment = 1, .round = 2, .group = 1}, 900, 0, "the next round has one group here"));
}

TEST_CASE("without a limit the machine is asked, and what a training or group has counts as free for its next one",
          "[memory]") {
    std::uint64_t left = 500;
    MemoryBudget budget(0, [&] { return std::optional(left); });
    REQUIRE(budget.take_training(450, "training"));
    left = 100;  // the training has it
    CHECK(budget.take_training(500, "the next one"));
    CHECK_FALSE(budget.take_training(700, "a larger one"));
    REQUIRE(budget.take({.experiment = 1, .round = 1, .group = 0}, 550, 0, "a turn instead"));
    left = 10;
    CHECK(budget.take({.experiment = 1, .round = 1, .group = 0}, 560, 0, "its next turn"));
    CHECK_FALSE(budget.take({.experiment = 1, .round = 1, .group = 1}, 20, 0, "another group"));
    MemoryBudget silent(0, [] { return std::optional<std::uint64_t>(); });
    CHECK(silent.take_training(std::uint64_t{1} << 50, "a machine that does not say"));
}

}  // namespace causeway::node
