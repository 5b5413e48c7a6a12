// What a program comes to in time: orders written out by hand.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "split/flow.h"
#include "split/program_acts.h"

namespace causeway {
namespace {

const Chain& acts_chain() {
    static const Chain made = *Chain::parse({"dense 8", "relu", "dense 3"}, {5}, "cross-entropy");
    return made;
}

/// A batch of 10 takes 1, 2 and 4 s forward, ten times that backward, 100 for each step and 0.5 for the loss.
LayerTable table() {
    return {.times = {.forward = {1, 2, 4}, .backward = {10, 20, 40}, .step = {100, 100, 100}, .loss = 0.5},
            .batch = 10};
}

Program program_of(const char* flow, std::uint32_t stage, std::uint32_t overlap = 0) {
    FlowInput input{.chain = acts_chain(), .cell = {.stage = stage, .segment = {}}};
    input.stages = 2;
    input.cuts = {2};
    input.overlap = overlap;
    auto program = compile_flow(flow, input);
    REQUIRE(program.has_value());
    return *std::move(program);
}

/// "3 >labels:80 >values:320 <grads 130"
std::string words(const std::vector<CellAct>& acts) {
    std::string all;
    for (const auto& act : acts) {
        const auto what = act.payload == Payload::labels      ? "labels"
                          : act.payload == Payload::gradients ? "grads"
                                                              : "values";
        all += all.empty() ? "" : " ";
        all += act.kind == CellAct::Kind::work      ? fmt::format("{}", act.seconds)
               : act.kind == CellAct::Kind::receive ? fmt::format("<{}@{}", what, act.cell)
                                                    : fmt::format(">{}:{}", what, act.bytes);
    }
    return all;
}

}  // namespace

TEST_CASE("a client sends, waits and steps batch by batch; a short batch takes its share but for the step", "[unit]") {
    const auto acts = acts_of(program_of("split", 0), acts_chain(), table(), {.examples = 15, .batch = 10});
    CHECK(words(acts) == ">labels:80 3 >values:320 <grads@1 230 "
                         ">labels:40 1.5 >values:160 <grads@1 215");
}

TEST_CASE("with an overlap the second half of a batch comes after the first half of a later one", "[unit]") {
    const auto acts =
        acts_of(program_of("split", 0, 1), acts_chain(), table(), {.examples = 20, .batch = 10, .local_epochs = 2});
    CHECK(words(acts) == ">labels:80 3 >values:320 >labels:80 3 >values:320 <grads@1 230 "
                         ">labels:80 3 >values:320 <grads@1 230 >labels:80 3 >values:320 <grads@1 230 <grads@1 230");
}

TEST_CASE("a host works for several clients in turn, and passes over who has no batch of that number", "[unit]") {
    const auto acts = acts_of(program_of("batch-major", 1), acts_chain(), table(),
                              {.examples = 30, .batch = 10, .clients = {20, 10}});
    const std::string step = "44.5 >grads:320 100";
    CHECK(words(acts) ==
          "<labels@2 <values@2 " + step + " <labels@3 <values@3 " + step + " <labels@2 <values@2 " + step);
}

TEST_CASE("times by arithmetic add up to what an example takes, most of it where the weights are", "[unit]") {
    const auto image = *Chain::parse({"conv 8 3x3", "relu", "flatten", "dense 10"}, {8, 8, 1}, "cross-entropy");
    const auto made = layers_by_arithmetic(image, 0.003);
    double sum = 0;
    for (std::size_t i = 0; i < image.layer_count(); ++i) {
        sum += made.times.forward[i] + made.times.backward[i] + made.times.step[i];
    }
    CHECK(sum == Approx(0.003));
    // 64 places of 80 weights, and 8 x 64 values, against 5,130 weights at one place
    CHECK(made.times.forward[0] / made.times.forward[3] == Approx((64.0 * 80 + 512) / (5130 + 10)));
    CHECK(made.times.backward[0] == Approx(2 * made.times.forward[0]));
}

}  // namespace causeway
