// Benchmarks of one process: sums and commits.
#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/bench_folder.h"
#include "common/bytes.h"
#include "common/random.h"
#include "coordinator/snapshots.h"
#include "coordinator/store.h"
#include "kernels/exact.h"

namespace causeway::cli {
namespace {

constexpr std::size_t sum_elements = 4 << 20;  // 16 MiB of f32, far above the caches
constexpr int repeats = 9;

std::vector<float> random_update(std::size_t count, std::uint64_t layer) {
    RandomStream random({.seed = 1, .purpose = "bench", .layer = layer});
    std::vector<float> values(count);
    for (auto& value : values) {
        value = static_cast<float>(random.uniform() - 0.5);
    }
    return values;
}

/// GB of f32 input a second.
BenchRow sum_row(std::size_t updates, double copy_rate) {
    std::vector<std::vector<float>> values;
    std::vector<ExactTerm> terms;
    for (std::size_t k = 0; k < updates; ++k) {
        values.push_back(random_update(sum_elements, k));
        terms.push_back({values.back().data(), 17});
    }
    std::vector<std::int64_t> high(sum_elements);
    std::vector<std::int64_t> low(sum_elements);
    const double time = median_seconds(repeats, [&] { exact_accumulate(high, low, terms); });
    const double rate = 4e-9 * static_cast<double>(updates * sum_elements) / time;
    return {fmt::format("{} update{} per pass, 1 thread", updates, updates == 1 ? "" : "s"), rate, "GB/s of f32",
            fmt::format("{:.2f} of a copy", rate / copy_rate), updates == 1 ? "5 or more" : "12 or more"};
}

}  // namespace

Result<std::vector<BenchRow>> bench_sums(const BenchOptions&) {
    const auto from = random_update(sum_elements, 9);
    std::vector<float> to(sum_elements);
    const double copy = 4e-9 * sum_elements / median_seconds(repeats, [&] { to = from; });
    return std::vector{BenchRow{"copy of the same bytes", copy, "GB/s", "", ""}, sum_row(1, copy), sum_row(8, copy)};
}

Result<std::vector<BenchRow>> bench_commits(const BenchOptions&) {
    TRY_ASSIGN(const auto folder, BenchFolder::make());
    TRY_ASSIGN(auto store, Store::open(folder.path));
    TRY_ASSIGN(auto snapshots, Snapshots::open(folder.path));
    TRY(store.execute(std::vector<Persist>{SaveExperiment{1, "bench", "", "running", "", "bench"}}));
    const auto values = random_update(100'000, 1);
    auto model = to_bytes(std::as_bytes(std::span(values)));
    std::uint32_t round = 0;
    const auto before = store.flushes() + snapshots.flushes();
    Status status;
    const double time = median_seconds(200, [&] {
        model[round % model.size()] ^= std::byte{1};
        const auto digest = snapshots.write(model);
        const SaveCommit commit{
            .experiment = 1, .round = round++, .model = digest.value_or(Digest{}), .model_bytes = 1};
        status = digest ? store.execute(std::vector<Persist>{commit}) : Status(fail(digest.error()));
    });
    TRY(status);
    const double flushes = static_cast<double>(store.flushes() + snapshots.flushes() - before) / round;
    return std::vector{BenchRow{"commit of a 400 KB model", 1e3 * time, "ms",
                                fmt::format("{:.2f} flushes each", flushes), "1.2 or less"}};
}

}  // namespace causeway::cli
