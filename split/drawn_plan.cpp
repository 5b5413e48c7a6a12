// See drawn_plan.h.
#include "split/drawn_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "split/round_walk.h"

namespace causeway {

const std::vector<DrawnModel>& models_to_plan() {
    static const std::vector<DrawnModel> all = {
        {"mlp", {"flatten", "dense 64", "relu", "dense 10"}, {8, 8, 1}},
        {"cnn",
         {"conv 16 3x3", "relu", "maxpool 2", "conv 32 3x3", "relu", "flatten", "dense 64", "relu", "dense 10"},
         {8, 8, 1}},
        {"image cnn",
         {"conv 8 3x3", "relu", "maxpool 2", "conv 16 3x3", "relu", "maxpool 2", "flatten", "dense 128", "relu",
          "dense 10"},
         {28, 28, 1}},
        {"deep mlp", {"dense 256", "relu", "dense 128", "relu", "dense 64", "relu", "dense 4"}, {40}},
    };
    return all;
}

double drawn_between(RandomStream& random, double least, double most) {
    return least * std::pow(most / least, random.uniform());
}

std::vector<PlanClient> drawn_clients(RandomStream& random) {
    std::vector<PlanClient> clients;
    const auto count = 3 + random.below(10);
    for (std::uint64_t i = 0; i < count; ++i) {
        const double uplink = drawn_between(random, 0.5e6, 100e6) / 8;
        clients.push_back({.name = fmt::format("client-{:02}", i),
                           .uplink = uplink,
                           .downlink = std::min(uplink * drawn_between(random, 1, 8), 12.5e6),
                           .delay = drawn_between(random, 0.001, 0.05),
                           .slowness = drawn_between(random, 1, 30),
                           .examples = 50 + random.below(600)});
    }
    return clients;
}

Result<double> walked(const PlanInput& input, const PlanRow& row) {
    if (row.cut == 0) {
        return row.cost.seconds;  // clients share nothing in a federated round: the sum is the walk
    }
    if (row.regime == "splitfed-v2") {
        return walk_together(profiles_by_name(input, row.cut), costs_of(input, row.cut)) + row.aggregation_seconds;
    }
    TRY_ASSIGN(const auto groups, planned_groups(input, row.cut, row.groups));
    return walk_round(groups, costs_of(input, row.cut)) + row.aggregation_seconds;
}

}  // namespace causeway
