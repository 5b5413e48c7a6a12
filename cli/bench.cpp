// `causeway bench`: the registry, the clockwork and the table.
#include "cli/bench.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "common/text.h"
#include "common/time.h"

namespace causeway::cli {
namespace {

constexpr Bench benches[] = {
    {"sums", "exact weighted accumulation against a copy of the same bytes", bench_sums},
    {"training", "training steps of an MLP, a CNN and ResNet-18, beside their targets", bench_training},
    {"images", "a CNN on images of --data: five epochs, a fifth held out", bench_images},
    {"commits", "durable commits: snapshot and transaction, with their flushes", bench_commits},
    {"transfer", "a pull between two processes over TLS on loopback", bench_transfer},
    {"streams", "streams between two node processes over TLS on loopback", bench_streams},
    {"split", "a split step between two processes beside the unsplit one and two hops", bench_split},
    {"rounds", "whole rounds of 8 clients, 100,000 parameters, next to no training", bench_rounds},
    {"exchange", "6 clients with a model of 100 MB: rate and memory", bench_exchange},
    {"sessions", "1,000 sessions over TLS: admission, memory, a broadcast, a round, a restart", bench_sessions},
    {"idle", "a coordinator and 8 clients at rest", bench_idle},
    {"faults", "from a client's end or silence, or the coordinator's end, to the next commit", bench_faults},
    {"endurance", "10,000 rounds of a small model: what memory grows by", bench_endurance},
    {"simulate", "the simulator: rounds a second without training, 10,000 virtual clients", bench_simulate},
    {"plan", "what the planner chooses and predicts, beside whole rounds of ten drawn federations", bench_plan},
};

std::string processor() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name")) {
            return std::string(trim(line.substr(line.find(':') + 1)));
        }
    }
    return "unknown processor";
}

int run_one(const Bench& bench, const BenchOptions& options, Output output) {
    const auto rows = bench.run(options);
    if (!rows) {
        return output.error(with_context(rows.error(), bench.name));
    }
    std::vector<std::vector<std::string>> cells;
    for (const auto& row : *rows) {
        output.object(Json::object()
                          .set("event", "bench")
                          .set("bench", bench.name)
                          .set("what", row.what)
                          .set("value", row.value)
                          .set("unit", row.unit)
                          .set("target", row.target)
                          .set("note", row.note));
        cells.push_back({row.what, fmt::format("{:.4g}", row.value), row.unit, row.target, row.note});
    }
    output.line(fmt::format("\n{}: {}", styled(bench.name, "1"), bench.about));
    output.line(table({"what", "median", "unit", "target", "note"}, cells));
    return exit_done;
}

}  // namespace

double median_seconds(int repeats, const std::function<void()>& call) {
    call();
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
        const auto begin = real_now();
        call();
        times.push_back(seconds(real_now() - begin));
    }
    std::ranges::nth_element(times, times.begin() + repeats / 2);
    return times[static_cast<std::size_t>(repeats / 2)];
}

int run_bench(const BenchOptions& options, Output output) {
    if (options.name == "transfer-server") {  // started by `bench transfer`, not for people
        const auto served = serve_transfer(options);
        return served ? exit_done : output.error(served.error());
    }
    if (options.name == "streams-server") {  // likewise
        const auto served = serve_streams(options);
        return served ? exit_done : output.error(served.error());
    }
    std::vector<std::string> names;
    for (const auto& bench : benches) {
        names.emplace_back(bench.name);
    }
    if (!options.name.empty() && std::ranges::find(names, options.name) == names.end()) {
        const auto nearest = nearest_name(options.name, names);
        return output.error({ErrorKind::invalid, "unknown_bench",
                             fmt::format("no benchmark \"{}\"{}; there are: {}", options.name,
                                         nearest ? ", did you mean \"" + *nearest + "\"" : "", join(names, ", "))});
    }
    output.line(fmt::format("{}; medians; this machine may be noisy, compare ratios", processor()));
    int code = exit_done;
    for (const auto& bench : benches) {
        if (options.name.empty() || options.name == bench.name) {
            code = std::max(code, run_one(bench, options, output));
        }
    }
    return code;
}

}  // namespace causeway::cli
