// `bench plan`: does a round take what the planner says, and is what it chooses the fastest, on federations drawn at
// random?
//
// Links of 0.5 to 100 Mbit/s, clients 1 to 30 times slower than this machine, a host on a line of its own, five models
// whose layers are timed here. The other side is the round itself on the virtual clock (simulation/planned_run.h), with
// real training. Seeds are fixed, so only this machine's layer times differ from run to run.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/layer_times.h"
#include "configs/split_plan.h"
#include "simulation/planned_run.h"
#include "split/drawn_plan.h"

namespace causeway::cli {
namespace {

constexpr std::uint64_t federations = 10;
constexpr std::uint32_t planned_batch = 32;
constexpr const char* rule = "optimizer = { kind = \"sgd\", learning_rate = 0.01, momentum = 0.9 }";

std::string name_of(const Chain& chain, const PlanRow& row) {
    return row.cut == 0 ? row.regime
                        : fmt::format("{}, {}, {} groups", row.regime, cut_name(chain, row.cut), row.groups);
}

/// Plan and rounds, side by side.
struct Compared {
    const PlanRow* row = nullptr;
    double real = 0;
    [[nodiscard]] double error() const { return std::abs(row->cost.seconds - real) / real; }
};

const Compared& of_regime(const std::vector<Compared>& all, const std::string& regime) {
    const auto worst = [&](const Compared& a, const Compared& b) {
        return (a.row->regime == regime ? a.error() : -1.0) < (b.row->regime == regime ? b.error() : -1.0);
    };
    return *std::ranges::max_element(all, worst);
}

/// The largest error of each regime: "federated 0.1, gsfl 1.2".
std::string errors_of(const std::vector<Compared>& all) {
    std::string words;
    for (const char* regime : {"federated", "split", "splitfed-v1", "splitfed-v2", "gsfl"}) {
        if (const auto& worst = of_regime(all, regime); worst.row->regime == regime) {
            words += fmt::format("{}{} {:.1f}", words.empty() ? "" : ", ", regime, 100 * worst.error());
        }
    }
    return words;
}

Result<std::vector<BenchRow>> one_federation(std::uint64_t seed, const std::shared_ptr<Trainer>& trainer) {
    RandomStream random({.seed = seed, .purpose = "bench-plan"});
    const auto& model = models_to_plan()[seed % models_to_plan().size()];
    auto chain = Chain::parse(model.layers, model.input, "cross-entropy");
    ASSERT(chain);
    TRY_ASSIGN(const auto optimizer, parse_optimizer("sgd learning_rate=0.01 momentum=0.9"));
    PlanInput input{.chain = *chain, .clients = drawn_clients(random), .times = {}, .host = drawn_host(random)};
    TRY_ASSIGN(input.times, measure_layers(*chain, optimizer, planned_batch, std::chrono::milliseconds(200)));
    input.batch = planned_batch;
    input.optimizer_moments = 1;
    TRY_ASSIGN(const auto rows, predict_rounds(input));
    const auto* chosen = best_row(rows);
    std::vector<Compared> all;
    double fastest = 0, of_chosen = 0, error = 0;
    for (const auto* row : telling_rows(input, rows)) {
        TRY_ASSIGN(const double real, simulation::run_planned(input, *row, {model.layers, rule}, trainer));
        all.push_back({row, real});
        fastest = fastest == 0 ? real : std::min(fastest, real);
        of_chosen = row == chosen ? real : of_chosen;
        error = std::max(error, all.back().error());
    }
    const auto what = fmt::format("{} clients, {}: {}", input.clients.size(), model.name, name_of(*chain, *chosen));
    return std::vector{
        BenchRow{.what = what,
                 .value = of_chosen / fastest,
                 .unit = "x the fastest",
                 .note = fmt::format("planned {:.3f} s, took {:.3f} s; federated {:.3f} s", chosen->cost.seconds,
                                     of_chosen, all.front().real),
                 .target = "1.05 or less"},
        BenchRow{.what = fmt::format("  largest error of {} rounds", all.size()),
                 .value = 100 * error,
                 .unit = "%",
                 .note = errors_of(all),
                 .target = "15 or less"}};
}

}  // namespace

Result<std::vector<BenchRow>> bench_plan(const BenchOptions&) {
    TRY_ASSIGN(auto device, Device::open("auto"));
    const auto trainer = std::make_shared<Trainer>(std::move(device));
    std::vector<BenchRow> rows;
    for (std::uint64_t seed = 1; seed <= federations; ++seed) {
        TRY_ASSIGN(const auto some, one_federation(seed, trainer));
        rows.insert(rows.end(), some.begin(), some.end());
    }
    return rows;
}

}  // namespace causeway::cli
