// The checker as a program: a table of kinds, shapes and backends with error, time, bytes and bit equality.
//
//   checker            correctness of every case, a line per kind; then speed
//   checker KIND       every case of one kind
#include <fmt/format.h>

#include <map>

#include "kernels/kinds.h"
#include "tests/kernels/checker.h"

namespace causeway::checker {
namespace {

struct Summary {
    int cases = 0;
    int failed = 0;
    int unequal_repeats = 0, unequal_threads = 0, unequal_split = 0, unequal_sets = 0, unequal_packed = 0;
    double worst_share = 0;

    void add(const Verdict& verdict) {
        ++cases;
        failed += verdict.problem.empty() ? 0 : 1;
        unequal_repeats += verdict.repeats ? 0 : 1;
        unequal_threads += verdict.threads ? 0 : 1;
        unequal_split += verdict.split ? 0 : 1;
        unequal_sets += verdict.sets ? 0 : 1;
        unequal_packed += verdict.packed ? 0 : 1;
        worst_share = std::max(worst_share, verdict.worst_share);
    }
    void print(std::string_view name) const {
        fmt::print("{:<46} {:>5} {:>6} {:>9.3f} {:>7} {:>7} {:>7} {:>7} {:>7}\n", name, cases, failed,
                   worst_share, unequal_repeats, unequal_threads, unequal_split, unequal_sets, unequal_packed);
    }
};

/// Returns how many cases failed.
int print_correctness(std::string_view backend, std::string_view wanted) {
    fmt::print("{:<46} {:>5} {:>6} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7}\n", backend, "cases", "failed", "err/tol",
               "repeat", "threads", "split", "sets", "packed");
    std::map<std::int32_t, Summary> by_kind;
    int failed = 0;
    for (const auto& tested : correctness_cases()) {
        const auto name = find_kind(tested.op.kind)->name;
        if (!wanted.empty() && wanted != name) {
            continue;
        }
        const auto verdict = check(backend, tested, 1);
        if (verdict.declined) {
            continue;
        }
        by_kind[tested.op.kind].add(verdict);
        failed += verdict.problem.empty() ? 0 : 1;
        if (!wanted.empty()) {
            Summary{}.print(tested.name);
        }
        if (!verdict.problem.empty()) {
            fmt::print("  {}: {}\n", tested.name, verdict.problem);
        }
    }
    for (const auto& [kind, summary] : by_kind) {
        summary.print(find_kind(kind)->name);
    }
    return failed;
}

void print_speed(const Device& device, std::string_view wanted) {
    fmt::print("\n{:<46} {:>10} {:>10} {:>9} {:>9}\n", device.signature(), "us", "bytes", "GB/s", "GFLOP/s");
    for (const auto& tested : speed_cases()) {
        if (!wanted.empty() && wanted != find_kind(tested.op.kind)->name) {
            continue;
        }
        const auto seconds = time_of(device, tested);
        if (!seconds) {
            fmt::print("{:<46} {}\n", tested.name, seconds.error().message);
            continue;
        }
        const auto bytes = bytes_moved(tested.op);
        fmt::print("{:<46} {:>10.1f} {:>10} {:>9.2f} {:>9.1f}\n", tested.name, *seconds * 1e6, bytes,
                   static_cast<double>(bytes) / *seconds * 1e-9, flops(tested.op) / *seconds * 1e-9);
    }
}

int run_all(std::string_view wanted) {
    int failed = 0;
    for (const auto backend : backend_names()) {
        failed += backend == "reference" ? 0 : print_correctness(backend, wanted);
    }
    for (const int threads : {1, 2}) {
        if (const auto device = Device::open("auto", {.threads = threads})) {
            print_speed(*device, wanted);
        }
    }
    return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace causeway::checker

int main(int count, char** arguments) { return causeway::checker::run_all(count > 1 ? arguments[1] : ""); }
