// The memory of a model: its parts by hand, and that layers which run in place take none of their own.
#include "model/footprint.h"

#include "tests/model/fixtures.h"

namespace causeway {
namespace {

Footprint footprint(const std::vector<std::string>& layers, const Shape& input, const std::string& optimizer,
                    std::int64_t batch) {
    return must(footprint_of(make_chain(layers, input), must(parse_optimizer(optimizer)), batch));
}

}  // namespace

TEST_CASE("a footprint is parameters, gradients, moments and activations, each counted by hand", "[unit][footprint]") {
    const Footprint found = footprint({"dense 20", "relu", "dense 10"}, {30}, "adamw", 8);
    REQUIRE(found.parameters == 30 * 20 + 20 + 20 * 10 + 10);
    REQUIRE(found.weight_bytes == 4 * found.parameters);
    REQUIRE(found.gradient_bytes == 4 * found.parameters);
    REQUIRE(found.optimizer_bytes == 8 * found.parameters);
    // Inputs, the first layer's values (relu in place), scores; and twice the largest boundary for gradients.
    REQUIRE(found.activation_bytes == 4 * 8 * (30 + 20 + 10 + 2 * 30));
    REQUIRE(found.total_bytes() == 16 * found.parameters + found.activation_bytes);
    REQUIRE(footprint({"dense 20", "gelu", "dense 10"}, {30}, "sgd", 8).activation_bytes ==
            found.activation_bytes + 4 * 8 * 20);
    REQUIRE(footprint({"dense 20", "relu", "dense 10"}, {30}, "sgd", 8).optimizer_bytes == 0);
}

TEST_CASE("a residual block's inner values count, and batch norm's buffers are weights", "[unit][footprint]") {
    const Footprint found = footprint({"resnet-18 10"}, {32, 32, 3}, "sgd momentum=0.9", 64);
    REQUIRE(found.parameters == 11'173'962);
    REQUIRE(found.buffers == 9600);
    REQUIRE(found.weight_bytes == 4 * (found.parameters + found.buffers));
    // Four values of 64x32x32x64 in each of the two first blocks alone.
    REQUIRE(found.activation_bytes > 8ull * 64 * 32 * 32 * 64 * 4);
    REQUIRE(found.activation_bytes < 2'000'000'000);
}

TEST_CASE("a footprint reads as a sentence", "[unit][footprint]") {
    REQUIRE(to_text(Footprint{.parameters = 17'578, .weight_bytes = 70'312}, 32) ==
            "17,578 parameters; with a batch of 32: weights 70.3 KB, gradients 0 B, optimizer 0 B, activations 0 B, "
            "70.3 KB in all");
}

}  // namespace causeway
