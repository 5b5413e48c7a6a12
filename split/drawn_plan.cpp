// See drawn_plan.h.
#include "split/drawn_plan.h"

#include <algorithm>
#include <cmath>
#include <map>

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
        {"wide head",
         {"conv 4 3x3", "relu", "maxpool 4", "flatten", "dense 512", "relu", "dense 512", "relu", "dense 10"},
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
        const double uplink = drawn_between(random, 0.5e6, 100e6) / 8;  // of bits
        clients.push_back({.name = fmt::format("client-{:02}", i),
                           .uplink = uplink,
                           .downlink = std::min(uplink * drawn_between(random, 1, 8), 12.5e6),
                           .delay = drawn_between(random, 0.001, 0.05),
                           .slowness = drawn_between(random, 1, 30),
                           .examples = 50 + random.below(300)});
    }
    return clients;
}

PlanHost drawn_host(RandomStream& random) {
    const double uplink = drawn_between(random, 50e6, 1e9) / 8;
    return {.uplink = uplink, .downlink = uplink, .delay = drawn_between(random, 0.0005, 0.01)};
}

LayerTimes drawn_times(const Chain& chain, RandomStream& random, std::uint32_t batch) {
    LayerTimes times;
    const double rate = drawn_between(random, 1e8, 1e10);  // operations a second
    for (std::size_t i = 0; i < chain.layer_count(); ++i) {
        const double operations = batch * arithmetic_of(chain, i);
        times.forward.push_back(5e-6 + operations / rate);
        times.backward.push_back(5e-6 + 2 * operations / rate);
        times.step.push_back(static_cast<double>(chain.arena_range(ArenaKind::trainable, i, i + 1).size()) * 3 / rate);
    }
    times.loss = 1e-5;
    return times;
}

namespace {

/// Those of a cut that say most: one group, few, as many as clients, all together, and whatever is best.
bool telling(const PlanInput& input, const PlanRow& row, const PlanRow* best_of_cut) {
    return row.regime == "splitfed-v2" || row.groups == 1 || row.groups == 2 || row.groups == 4 ||
           row.groups == input.clients.size() || &row == best_of_cut;
}

}  // namespace

std::vector<const PlanRow*> telling_rows(const PlanInput& input, const std::vector<PlanRow>& rows) {
    std::map<std::uint32_t, const PlanRow*> best;  // of each cut
    for (const auto& row : rows) {
        auto& of_cut = best[row.cut];
        of_cut = of_cut == nullptr || row.cost.seconds < of_cut->cost.seconds ? &row : of_cut;
    }
    std::vector<std::uint32_t> cuts;
    for (const auto& [cut, row] : best) {
        cuts.push_back(cut);
    }
    std::ranges::stable_sort(cuts, {}, [&](std::uint32_t cut) { return best[cut]->cost.seconds; });
    std::erase(cuts, 0U);
    constexpr std::size_t fast_cuts = 2;
    if (cuts.size() > fast_cuts + 1) {  // the fastest, and a slow one
        cuts.erase(cuts.begin() + fast_cuts, cuts.end() - 1);
    }
    std::vector<const PlanRow*> told;
    for (const auto& row : rows) {
        const bool wanted = row.cut == 0 || std::ranges::find(cuts, row.cut) != cuts.end();
        if (wanted && (row.cut == 0 || telling(input, row, best[row.cut]))) {
            told.push_back(&row);
        }
    }
    return told;
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
