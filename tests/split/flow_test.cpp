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

TEST_CASE("batch-major takes a batch of each client in turn, and its clients do what those of split do",
          "[unit][flow]") {
    const Chain chain = some_chain();
    const auto of = [&](const char* flow, std::uint32_t stage, std::uint32_t overlap) {
        return *compile_flow(flow,
                             {.chain = chain, .cell = {.stage = stage}, .stages = 2, .cuts = {3}, .overlap = overlap});
    };
    CHECK(to_text(of("batch-major", 1, 2)) ==
          "repeat epochs {\n"
          "    repeat batches {\n"
          "        repeat clients {\n"
          "            recv labels from 2\n"
          "            recv activations from 2\n"
          "            forward [3, 4)\n"
          "            loss\n"
          "            backward [3, 4)\n"
          "            send gradients to 2\n"
          "            step [3, 4)\n"
          "        }\n"
          "    }\n"
          "}\n");
    CHECK(of("batch-major", 0, 2) == of("split", 0, 2));
    CHECK(to_text(of("split", 0, 2)) ==
          "repeat epochs {\n"
          "    repeat batches {\n"
          "        load\n"
          "        send labels to 1\n"
          "        forward [0, 3)\n"
          "        send activations to 1\n"
          "        stash 2\n"
          "        recv gradients from 1\n"
          "        backward [0, 3)\n"
          "        step [0, 3)\n"
          "    }\n"
          "}\n");
    for (const std::uint32_t stage : {0u, 1u}) {
        CHECK(check_runnable(of("batch-major", stage, 1), chain));
        CHECK(*parse_program(to_text(of("batch-major", stage, 1))) == of("batch-major", stage, 1));
    }
}

TEST_CASE("a batch in microbatches, recomputed, kept and with a deadline is an order of instructions", "[unit][flow]") {
    const Chain chain = some_chain();
    using Snapshots = BatchRule::Snapshots;
    const auto program = compile_flow("local-epochs", {.chain = chain,
                                                       .cell = whole_chain(chain),
                                                       .batch = {.parts = BatchRule::Parts::microbatches,
                                                                 .recompute = 2,
                                                                 .step_deadline_ms = 1500,
                                                                 .snapshots = Snapshots::present}});
    REQUIRE(program);
    REQUIRE(to_text(*program) ==
            "repeat epochs {\n"
            "    repeat batches {\n"
            "        deadline 1500\n"
            "        repeat microbatches {\n"
            "            load\n"
            "            forward [0, 3)\n"  // the relu runs in place, so no block begins with it
            "            forward [3, 4)\n"
            "            loss\n"
            "            backward [3, 4)\n"
            "            recompute [0, 3)\n"
            "            backward [0, 3)\n"
            "        }\n"
            "        step [0, 4)\n"
            "        snapshot\n"
            "    }\n"
            "}\n");
    REQUIRE(check_runnable(*program, chain));
    REQUIRE(works_by_microbatch(*program));
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

TEST_CASE("split gives the client what is before the cut, the host what is after it", "[unit][flow]") {
    const Chain chain = some_chain();
    const auto compiled = [&](std::uint32_t stage) {
        return compile_flow("split", {.chain = chain, .cell = {.stage = stage}, .stages = 2, .cuts = {3}});
    };
    REQUIRE(compiled(0));
    REQUIRE(compiled(1));
    REQUIRE(layers_of(*compiled(0)) == std::vector<LayerInterval>{{0, 3}});
    REQUIRE(layers_of(*compiled(1)) == std::vector<LayerInterval>{{3, 4}});
    REQUIRE(count_instructions(*compiled(0), OpCode::loss) == 0);
    REQUIRE(check_runnable(*compiled(0), chain));
    REQUIRE(check_runnable(*compiled(1), chain));
}

TEST_CASE("u-shaped leaves labels and both ends with the client", "[unit][flow]") {
    const Chain chain = some_chain();
    const auto compiled = [&](std::uint32_t stage) {
        return compile_flow("u-shaped", {.chain = chain, .cell = {.stage = stage}, .stages = 3, .cuts = {2, 3}});
    };
    REQUIRE(compiled(0));
    REQUIRE(*compiled(0) == *compiled(2));
    REQUIRE(layers_of(*compiled(0)) == std::vector<LayerInterval>{{0, 2}, {3, 4}});
    REQUIRE(layers_of(*compiled(1)) == std::vector<LayerInterval>{{2, 3}});
    REQUIRE(to_text(*compiled(1)).find("labels") == std::string::npos);
    REQUIRE(to_text(*compiled(0)).find("send labels") == std::string::npos);
}

TEST_CASE("a cut that would send raw inputs, or leaves a stage empty, is refused with the reason", "[unit][flow]") {
    const Chain chain = some_chain();
    const auto refusal = [&](std::vector<std::uint32_t> cuts) {
        const auto stages = static_cast<std::uint32_t>(cuts.size()) + 1;
        const auto program =
            compile_flow(cuts.size() == 1 ? "split" : "u-shaped", {.chain = chain, .stages = stages, .cuts = cuts});
        REQUIRE_FALSE(program);
        return program.error();
    };
    REQUIRE_THAT(refusal({1}).message, Catch::Contains("raw inputs"));
    for (const auto& cuts : std::vector<std::vector<std::uint32_t>>{{0}, {4}, {9}, {3, 2}, {2, 2}, {2, 4}}) {
        REQUIRE(refusal(cuts).code == "bad_cut");
    }
    REQUIRE(compile_flow("split", {.chain = chain, .stages = 2}).error().code == "bad_flow");
}

TEST_CASE("every registered flow has a name and a word about itself", "[unit][flow]") {
    for (const Flow* flow : flows()) {
        REQUIRE_FALSE(flow->name.empty());
        REQUIRE_FALSE(flow->doc.empty());
        REQUIRE(find_flow(flow->name).value() == flow);
    }
}

}  // namespace causeway
