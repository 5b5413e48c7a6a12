// `bench plan`: is what the planner chooses the fastest, and are its times right, on federations drawn at random?
//
// Links of 0.5 to 100 Mbit/s, clients 1 to 30 times slower than this machine, four models whose layers are timed here.
// The other side is a walk of the round batch by batch (split/round_walk.h), in which groups meet at the host. Seeds
// are fixed, so only this machine's layer times differ from run to run.
#include <cmath>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/layer_times.h"
#include "common/random.h"
#include "configs/split_plan.h"
#include "split/round_walk.h"

namespace causeway::cli {
namespace {

constexpr std::uint64_t federations = 10;
constexpr std::uint32_t batch = 32;

struct Model {
    std::string_view name;
    std::vector<std::string> layers;
    Shape input;
};

const std::vector<Model>& models() {
    static const std::vector<Model> all = {
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

/// Evenly in the logarithm.
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

Result<double> walked(const PlanInput& input, const PlanRow& row) {
    if (row.cut == 0) {
        return row.cost.seconds;  // clients share nothing in a federated round: the sum is the walk
    }
    TRY_ASSIGN(const auto groups, planned_groups(input, row.cut, row.groups));
    return walk_round(groups, costs_of(input, row.cut)) + row.aggregation_seconds;
}

std::string name_of(const Chain& chain, const PlanRow& row) {
    return row.cut == 0 ? row.regime
                        : fmt::format("{}, {}, {} groups", row.regime, cut_name(chain, row.cut), row.groups);
}

/// The choice against the fastest walk of all rows, and the planner's largest error among the best of each regime.
Result<std::vector<BenchRow>> one_federation(std::uint64_t seed) {
    RandomStream random({.seed = seed, .purpose = "bench-plan"});
    const auto& model = models()[seed % models().size()];
    auto chain = Chain::parse(model.layers, model.input, "cross-entropy");
    ASSERT(chain);
    TRY_ASSIGN(const auto optimizer, parse_optimizer("sgd learning_rate=0.05 momentum=0.9"));
    PlanInput input{.chain = *chain, .clients = drawn_clients(random), .times = {}, .host = {}};
    TRY_ASSIGN(input.times, measure_layers(*chain, optimizer, batch, std::chrono::milliseconds(200)));
    input.batch = batch;
    input.optimizer_moments = 1;
    TRY_ASSIGN(const auto rows, predict_rounds(input));
    const auto* chosen = best_row(rows);
    double fastest = 0, of_chosen = 0, error = 0;
    for (const auto& row : rows) {
        TRY_ASSIGN(const double real, walked(input, row));
        fastest = fastest == 0 ? real : std::min(fastest, real);
        of_chosen = &row == chosen ? real : of_chosen;
        error = std::max(error, std::abs(row.cost.seconds - real) / real);
    }
    const auto what = fmt::format("{} clients, {}: {}", input.clients.size(), model.name, name_of(*chain, *chosen));
    return std::vector{
        BenchRow{.what = what,
                 .value = of_chosen / fastest,
                 .unit = "x the fastest",
                 .note = fmt::format("predicted {:.2f} s, walked {:.2f} s", chosen->cost.seconds, of_chosen),
                 .target = "1.05 or less"},
        BenchRow{.what = "  largest error of a prediction",
                 .value = 100 * error,
                 .unit = "%",
                 .note = fmt::format("of {} cuts and group counts", rows.size()),
                 .target = "15 or less"}};
}

}  // namespace

Result<std::vector<BenchRow>> bench_plan(const BenchOptions&) {
    std::vector<BenchRow> rows;
    for (std::uint64_t seed = 1; seed <= federations; ++seed) {
        TRY_ASSIGN(const auto some, one_federation(seed));
        rows.insert(rows.end(), some.begin(), some.end());
    }
    return rows;
}

}  // namespace causeway::cli
