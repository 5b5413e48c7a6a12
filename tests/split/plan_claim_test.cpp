// The planner's claim, on federations drawn at random: its times come near a walk batch by batch, and what it chooses
// is the fastest or next to it.
#include <cmath>

#include <catch2/catch.hpp>

#include "split/drawn_plan.h"

namespace causeway {
namespace {

/// Times that follow the values at a layer's boundaries and its parameters, as a machine's do roughly.
LayerTimes drawn_times(const Chain& chain, RandomStream& random) {
    LayerTimes times;
    const double rate = drawn_between(random, 1e8, 1e10);  // operations a second
    for (std::size_t i = 0; i < chain.layer_count(); ++i) {
        const auto values = static_cast<double>(element_count(chain.boundary(i + 1).front().shape));
        const auto parameters = static_cast<double>(chain.arena_range(ArenaKind::trainable, i, i + 1).size());
        times.forward.push_back(5e-6 + 32 * (values + 2 * parameters) / rate);
        times.backward.push_back(5e-6 + 2 * 32 * (values + 2 * parameters) / rate);
        times.step.push_back(parameters * 3 / rate);
    }
    times.loss = 1e-5;
    return times;
}

}  // namespace

TEST_CASE("one relay is walked in the time that the model sums up", "[paper][plan]") {
    const auto chain = *Chain::parse(models_to_plan()[1].layers, models_to_plan()[1].input, "cross-entropy");
    RandomStream random({.seed = 1, .purpose = "test-plan-claim"});
    PlanInput input{.chain = chain, .clients = drawn_clients(random), .times = drawn_times(chain, random), .host = {}};
    input.local_epochs = 2;
    const auto rows = predict_rounds(input);
    REQUIRE(rows.has_value());
    for (const auto& row : *rows) {
        if (row.groups == 1) {
            const auto real = walked(input, row);
            REQUIRE(real.has_value());
            CHECK(*real == Approx(row.cost.seconds).epsilon(1e-9));
        }
    }
}

TEST_CASE("the planner's times are within 15 % of a walk, and its choice within 5 % of the fastest", "[paper][plan]") {
    std::size_t good_choices = 0;
    constexpr std::uint64_t federations = 40;
    for (std::uint64_t seed = 1; seed <= federations; ++seed) {
        RandomStream random({.seed = seed, .purpose = "test-plan-claim"});
        const auto& model = models_to_plan()[seed % models_to_plan().size()];
        const auto chain = *Chain::parse(model.layers, model.input, "cross-entropy");
        PlanInput input{
            .chain = chain, .clients = drawn_clients(random), .times = drawn_times(chain, random), .host = {}};
        input.optimizer_moments = 1;
        const auto rows = predict_rounds(input);
        REQUIRE(rows.has_value());
        const auto* chosen = best_row(*rows);
        double fastest = 1e300, of_chosen = 0;
        for (const auto& row : *rows) {
            const auto walk = walked(input, row);
            REQUIRE(walk.has_value());
            const double real = *walk;
            CAPTURE(seed, row.regime, row.cut, row.groups, row.cost.seconds, real);
            CHECK(std::abs(row.cost.seconds - real) <= 0.15 * real);
            fastest = std::min(fastest, real);
            of_chosen = &row == chosen ? real : of_chosen;
        }
        good_choices += of_chosen <= 1.05 * fastest ? 1 : 0;
    }
    CHECK(good_choices * 10 >= federations * 9);
}

}  // namespace causeway
