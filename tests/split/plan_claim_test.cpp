// On federations drawn at random: a plan is made of walks batch by batch, and the cost model's sums, which stand in for
// them where there is too much to walk, come near. Whether rounds take that time is tests/simulation's to say.
#include <cmath>

#include <catch2/catch.hpp>

#include "split/drawn_plan.h"
#include "split/round_walk.h"

namespace causeway {

TEST_CASE("one relay is walked in the time that the model sums up", "[paper][plan]") {
    const auto chain = *Chain::parse(models_to_plan()[1].layers, models_to_plan()[1].input, "cross-entropy");
    RandomStream random({.seed = 1, .purpose = "test-plan-claim"});
    PlanInput input{.chain = chain, .clients = drawn_clients(random), .times = {}, .host = drawn_host(random)};
    input.times = drawn_times(chain, random, input.batch);
    input.local_epochs = 2;
    const auto rows = predict_rounds(input);
    REQUIRE(rows.has_value());
    for (const auto& row : *rows) {
        if (row.groups == 1) {
            const auto real = walked(input, row);
            REQUIRE(real.has_value());
            const auto groups = planned_groups(input, row.cut, row.groups);
            const double sum = gsfl_round(*groups, costs_of(input, row.cut)).seconds + row.aggregation_seconds;
            CHECK(*real == Approx(sum).epsilon(1e-9));
        }
    }
}

TEST_CASE("a plan of ordinary size is made of walks, and the sums come within 15 % of them for 99 rows of 100",
          "[paper][plan]") {
    constexpr std::uint64_t federations = 40;
    std::size_t summed = 0, off = 0;
    for (std::uint64_t seed = 1; seed <= federations; ++seed) {
        RandomStream random({.seed = seed, .purpose = "test-plan-claim"});
        const auto& model = models_to_plan()[seed % models_to_plan().size()];
        const auto chain = *Chain::parse(model.layers, model.input, "cross-entropy");
        PlanInput input{.chain = chain, .clients = drawn_clients(random), .times = {}, .host = drawn_host(random)};
        input.times = drawn_times(chain, random, input.batch);
        input.optimizer_moments = 1;
        const auto rows = predict_rounds(input);
        REQUIRE(rows.has_value());
        for (const auto& row : *rows) {
            const auto walk = walked(input, row);
            REQUIRE(walk.has_value());
            CAPTURE(seed, row.regime, row.cut, row.groups, row.cost.seconds, *walk);
            CHECK(row.cost.seconds == Approx(*walk));
            if (row.cut == 0 || row.regime == "splitfed-v2") {
                continue;
            }
            auto beside = input;
            beside.host = {};
            const auto groups = planned_groups(beside, row.cut, row.groups);
            REQUIRE(groups.has_value());
            const auto costs = costs_of(beside, row.cut);
            const double alone = walk_round(*groups, costs);
            const double error = std::abs(gsfl_round(*groups, costs).seconds - alone) / alone;
            CHECK(error <= 0.25);
            summed += 1;
            off += error > 0.15 ? 1 : 0;
        }
    }
    CHECK(off * 100 <= summed);  // those are of hosts that never rest
}

}  // namespace causeway
