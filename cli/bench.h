// Benchmarks: each is one function that measures this machine and returns rows; one registry line each.
//
// A row has both sides of a comparison where there is one, measured in the same run, as medians. docs/performance.md
// keeps tables made by these commands. Never part of a test's verdict.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "common/result.h"

namespace causeway::cli {

struct BenchRow {
    std::string what;
    double value = 0;
    std::string unit;
    std::string note;    // the other side, or what limits it
    std::string target;  // "5 or more", "1.2 or less"; empty: none
};

struct Bench {
    std::string_view name;
    std::string_view about;
    Result<std::vector<BenchRow>> (*run)(const BenchOptions& options);
};

/// Seconds of one call: the median of `repeats` calls after one that is not counted.
[[nodiscard]] double median_seconds(int repeats, const std::function<void()>& call);

// One file each.
Result<std::vector<BenchRow>> bench_sums(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_training(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_images(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_commits(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_transfer(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_rounds(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_sessions(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_idle(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_faults(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_endurance(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_exchange(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_simulate(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_streams(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_split(const BenchOptions& options);
Result<std::vector<BenchRow>> bench_plan(const BenchOptions& options);
/// The other process of bench_transfer: serves one blob until its peer goes.
Result<std::vector<BenchRow>> serve_transfer(const BenchOptions& options);
/// Median seconds of a message of so many bytes to another process, and as much back.
Result<double> stream_round_trip(std::size_t bytes);
/// The other process of bench_streams: sends back what it gets until its peer goes.
Result<std::vector<BenchRow>> serve_streams(const BenchOptions& options);

}  // namespace causeway::cli
