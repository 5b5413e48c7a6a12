// Flows compile to programs that pass the checker and that the trainer runs.
#include <catch2/catch.hpp>

#include "model/trainer.h"
#include "split/flow.h"

namespace causeway {
namespace {

Chain some_chain() {
    return *Chain::parse({"flatten", "dense 8", "relu", "dense 4"}, {3, 2}, "cross-entropy");
}

}  // namespace

TEST_CASE("local-epochs is a step per batch, over all layers", "[unit][flow]") {
    const Chain chain = some_chain();
    const auto program = compile_flow("local-epochs", {.chain = chain, .cell = whole_chain(chain)});
    REQUIRE(program);
    REQUIRE(to_text(*program) ==
            "repeat epochs {\n"
            "    repeat batches {\n"
            "        load\n"
            "        forward [0, 4)\n"
            "        loss\n"
            "        backward [0, 4)\n"
            "        step [0, 4)\n"
            "    }\n"
            "}\n");
    REQUIRE(check_runnable(*program, chain));
}

TEST_CASE("a rule on gradients gets its instruction for each layer with parameters, last layer first", "[unit][flow]") {
    const Chain chain = some_chain();
    const auto program = compile_flow(
        "local-epochs", {.chain = chain, .cell = whole_chain(chain), .gradient_rule = GradientRule::present});
    REQUIRE(program);
    const auto& batch = program->instructions[0].body[0].body;
    REQUIRE(batch.size() == 7);
    REQUIRE(batch[4].code == OpCode::gradient_final);
    REQUIRE(batch[4].index == 3);
    REQUIRE(batch[5].index == 1);
    REQUIRE(check_runnable(*program, chain));
}

TEST_CASE("a flow that cannot serve the mesh, or does not exist, says so", "[unit][flow]") {
    const Chain chain = some_chain();
    REQUIRE(compile_flow("local-epochs", {.chain = chain, .cell = {.segment = {0, 2}}, .stages = 2}).error().code ==
            "bad_flow");
    const auto unknown = compile_flow("local-epoch", {.chain = chain, .cell = whole_chain(chain)});
    REQUIRE(unknown.error().code == "unknown_flow");
    REQUIRE_THAT(unknown.error().message, Catch::Contains("\"local-epochs\""));
}

TEST_CASE("every registered flow has a name and a word about itself", "[unit][flow]") {
    for (const Flow* flow : flows()) {
        REQUIRE_FALSE(flow->name.empty());
        REQUIRE_FALSE(flow->doc.empty());
        REQUIRE(find_flow(flow->name).value() == flow);
    }
}

}  // namespace causeway
