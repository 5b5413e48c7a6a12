// `bench plan`: is what the planner chooses the fastest, and are its times right, on federations drawn at random?
//
// Links of 0.5 to 100 Mbit/s, clients 1 to 30 times slower than this machine, four models whose layers are timed here.
// The other side is a walk of the round batch by batch (split/round_walk.h), in which groups meet at the host. Seeds
// are fixed, so only this machine's layer times differ from run to run.
#include <cmath>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/layer_times.h"
#include "configs/split_plan.h"
#include "split/drawn_plan.h"

namespace causeway::cli {
namespace {

constexpr std::uint64_t federations = 10;
constexpr std::uint32_t batch = 32;

std::string name_of(const Chain& chain, const PlanRow& row) {
    return row.cut == 0 ? row.regime
                        : fmt::format("{}, {}, {} groups", row.regime, cut_name(chain, row.cut), row.groups);
}

/// The choice against the fastest walk of all rows, and the planner's largest error among the best of each regime.
Result<std::vector<BenchRow>> one_federation(std::uint64_t seed) {
    RandomStream random({.seed = seed, .purpose = "bench-plan"});
    const auto& model = models_to_plan()[seed % models_to_plan().size()];
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
