// The planner's claim, on federations drawn at random: its times come near a walk batch by batch, and what it chooses
// is the fastest or next to it.
#include <cmath>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "common/random.h"
#include "split/planner.h"
#include "split/round_walk.h"

namespace causeway {
namespace {

struct Model {
    std::vector<std::string> layers;
    Shape input;
};

const std::vector<Model>& models() {
    static const std::vector<Model> all = {
        {{"flatten", "dense 64", "relu", "dense 10"}, {8, 8, 1}},
        {{"conv 16 3x3", "relu", "maxpool 2", "conv 32 3x3", "relu", "flatten", "dense 64", "relu", "dense 10"},
         {8, 8, 1}},
        {{"conv 8 3x3", "relu", "maxpool 2", "conv 16 3x3", "relu", "maxpool 2", "flatten", "dense 128", "relu",
          "dense 10"},
         {28, 28, 1}},
        {{"dense 256", "relu", "dense 128", "relu", "dense 64", "relu", "dense 4"}, {40}},
    };
    return all;
}

/// Between `least` and `most`, evenly in the logarithm.
double drawn(RandomStream& random, double least, double most) {
    return least * std::pow(most / least, random.uniform());
}

std::vector<PlanClient> drawn_clients(RandomStream& random) {
    std::vector<PlanClient> clients;
    const auto count = 3 + random.below(10);
    for (std::uint64_t i = 0; i < count; ++i) {
        const double uplink = drawn(random, 0.5e6, 100e6) / 8;
        clients.push_back({.name = fmt::format("client-{:02}", i),
                           .uplink = uplink,
                           .downlink = std::min(uplink * drawn(random, 1, 8), 12.5e6),
                           .delay = drawn(random, 0.001, 0.05),
                           .slowness = drawn(random, 1, 30),
                           .examples = 50 + random.below(600)});
    }
    return clients;
}

/// Times that follow the values at a layer's boundaries and its parameters, as a machine's do roughly.
LayerTimes drawn_times(const Chain& chain, RandomStream& random) {
    LayerTimes times;
    const double rate = drawn(random, 1e8, 1e10);  // operations a second
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

/// The round of a row, walked with the groups that the planner made.
double walked(const PlanInput& input, const PlanRow& row) {
    if (row.cut == 0) {
        return row.cost.seconds;  // nothing is shared in a federated round: the sum is the walk
    }
    auto costs = costs_of(input, row.cut);
    const auto groups = planned_groups(input, row.cut, row.groups);
    REQUIRE(groups.has_value());
    return walk_round(*groups, costs) + row.aggregation_seconds;
}

}  // namespace

TEST_CASE("one relay is walked in the time that the model sums up", "[paper][plan]") {
    const auto chain = *Chain::parse(models()[1].layers, models()[1].input, "cross-entropy");
    RandomStream random({.seed = 1, .purpose = "test-plan-claim"});
    PlanInput input{.chain = chain, .clients = drawn_clients(random), .times = drawn_times(chain, random), .host = {}};
    input.local_epochs = 2;
    const auto rows = predict_rounds(input);
    REQUIRE(rows.has_value());
    for (const auto& row : *rows) {
        if (row.groups == 1) {
            CHECK(walked(input, row) == Approx(row.cost.seconds).epsilon(1e-9));
        }
    }
}

TEST_CASE("the planner's times are within 15 % of a walk, and its choice within 5 % of the fastest", "[paper][plan]") {
    std::size_t good_choices = 0;
    constexpr std::uint64_t federations = 40;
    for (std::uint64_t seed = 1; seed <= federations; ++seed) {
        RandomStream random({.seed = seed, .purpose = "test-plan-claim"});
        const auto& model = models()[seed % models().size()];
        const auto chain = *Chain::parse(model.layers, model.input, "cross-entropy");
        PlanInput input{
            .chain = chain, .clients = drawn_clients(random), .times = drawn_times(chain, random), .host = {}};
        input.optimizer_moments = 1;
        const auto rows = predict_rounds(input);
        REQUIRE(rows.has_value());
        const auto* chosen = best_row(*rows);
        double fastest = 1e300, of_chosen = 0;
        for (const auto& row : *rows) {
            const double real = walked(input, row);
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
