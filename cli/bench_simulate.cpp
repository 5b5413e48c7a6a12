// Benchmark of the simulator: rounds a second without training, and ten thousand virtual clients.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/experiment_file.h"
#include "common/text.h"
#include "simulation/mix.h"
#include "simulation/modelled_world.h"

namespace causeway::cli {
namespace {

using namespace simulation;

constexpr std::uint32_t many_rounds = 2000;
constexpr std::uint32_t few_rounds = 3;
constexpr std::size_t many_clients = 10'000;
constexpr Duration simulate_bound = std::chrono::hours(1000);
constexpr const char* mix = "80% uplink=10mbit,downlink=50mbit,delay=20ms; 20% uplink=2mbit,delay=80ms";

std::string simulated_experiment_text(std::uint32_t rounds, std::size_t clients) {
    return fmt::format(
        "[experiment]\nname = \"bench\"\nrounds = {}\n[data]\ndataset = \"none\"\nshape = [8]\n[model]\n"
        "layers = [\"dense 8\"]\n[regime]\npreset = \"fedavg\"\n[sync]\nmin_clients = {}\n"
        "[evaluation]\nwhere = \"none\"\n",
        rounds, clients);
}

Result<ModelledSetup> setup_of(std::size_t clients) {
    ModelledSetup setup;
    setup.line = {125e6, 125e6};  // 1 Gbit/s each way
    setup.dataset.name = "none";
    setup.dataset.shape = {8};
    setup.dataset.classes = 8;
    setup.dataset.examples = setup.examples;
    for (std::uint32_t i = 0; i < clients; ++i) {
        setup.names.push_back(demo_client_name(i));
    }
    TRY_ASSIGN(setup.links, parse_links(mix, clients, 1));
    TRY_ASSIGN(setup.per_example, parse_speeds("80% 50us; 20% 500us", clients, 1));
    return setup;
}

/// Resident now, in bytes.
double resident() {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("VmRSS:")) {
            return 1024 * std::strtod(line.c_str() + 6, nullptr);
        }
    }
    return 0;
}

/// Real seconds of the rounds, the world still there.
Result<double> play_bench(ModelledWorld& modelled, std::uint32_t rounds) {
    auto& world = *modelled.world;
    TRY(start_and_wait(world));
    const auto begin = real_now();
    world.submit(simulated_experiment_text(rounds, modelled.clients.size()));
    if (!world.run_until([&world] { return world.over(1); }, simulate_bound) || world.rounds(1) != rounds) {
        return fail(ErrorKind::io, "bench_failed", "the simulated run failed: " + world.reason(1));
    }
    for (const auto& rule : world.broken_rules()) {
        return fail(ErrorKind::io, "bench_failed", "a rule is broken: " + rule);
    }
    return seconds(real_now() - begin);
}

}  // namespace

Result<std::vector<BenchRow>> bench_simulate(const BenchOptions&) {
    TRY_ASSIGN(const auto ten, setup_of(10));
    std::vector<double> rates;
    for (int i = 0; i < 5; ++i) {
        ModelledWorld modelled(ten);
        TRY_ASSIGN(const auto time, play_bench(modelled, many_rounds));
        rates.push_back(many_rounds / time);
    }
    std::ranges::sort(rates);
    TRY_ASSIGN(const auto thousands, setup_of(many_clients));
    const auto before = resident();
    ModelledWorld modelled(thousands);
    TRY_ASSIGN(const auto time, play_bench(modelled, few_rounds));
    const auto memory = resident() - before;
    const auto& world = *modelled.world;
    const auto log = world.log(1);
    const auto& summary = log.commits.back().summary;
    return std::vector{
        BenchRow{"rounds of 10 clients without training", rates[rates.size() / 2], "rounds/s", "every rule checked"},
        BenchRow{fmt::format("{} clients: memory", many_clients), memory / 1e6, "MB", "all of the world"},
        BenchRow{fmt::format("{} clients: real time of a round", many_clients), time / few_rounds, "s",
                 fmt::format("predicts {} and {} up a round for 400 KB models",
                             format_duration(from_seconds(summary["seconds"].number())),
                             format_bytes(static_cast<std::uint64_t>(summary["bytes_up"].integer())))}};
}

}  // namespace causeway::cli
