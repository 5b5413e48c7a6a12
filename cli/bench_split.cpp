// What a cut costs where lines cost nothing: a split step between two processes on loopback, beside the same step
// unsplit in one process and the message that crosses each way.
//
// Both are real federations of one client, with as many threads. Of each the rounds of few and of many local epochs are
// timed: what a round costs beside its steps is in both and goes in the difference. A split step can be no faster than
// the unsplit one and its two hops, for client and host wait for each other.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/bench_folder.h"
#include "cli/local_federation.h"
#include "configs/reader.h"

namespace causeway::cli {
namespace {

constexpr std::size_t split_batch = 32;
constexpr std::size_t batches = 40;  // of an epoch
constexpr std::size_t features = 256;
constexpr std::size_t cut_width = 512;  // values of an example that cross the cut: 64 KiB a batch
constexpr int few_epochs = 1;
constexpr int many_epochs = 5;
constexpr int passes = 2;
constexpr int rounds = 6;  // the first, in which kernels are made, does not count

std::string split_experiment_text(const std::string& regime, int epochs) {
    return fmt::format(R"(
[experiment]
name   = "bench"
rounds = {}
[data]
dataset = "bench"
label   = "last"
shape   = [{}]
[model]
layers = ["dense {}", "relu", "dense 1024", "relu", "dense 1024", "relu", "dense 10"]
[train]
optimizer = {{ kind = "sgd", learning_rate = 0.001 }}
batch = {}
local_epochs = {}
[regime]
{}
[sync]
min_clients = 1
[evaluation]
where = "none"
)",
                       rounds, features, cut_width, split_batch, epochs, regime);
}

std::string dataset() {
    std::string text;
    for (std::size_t row = 0; row < split_batch * batches; ++row) {
        for (std::size_t column = 0; column < features; ++column) {
            text += fmt::format("{},", (row * 7 + column * 3) % 5);
        }
        text += fmt::format("{}\n", row % 10);
    }
    return text;
}

/// Least seconds of a round: other work on the machine only adds, and to both sides at different times.
Result<double> round_seconds(const std::string& regime, int epochs) {
    TRY_ASSIGN(const auto folder, BenchFolder::make());
    TRY(write_file_durably(folder.path / "bench.csv", as_bytes(dataset())));
    LocalOptions options;
    TRY_ASSIGN(options.experiment, read_experiment_or_fail(split_experiment_text(regime, epochs), "bench"));
    options.dataset = folder.path / "bench.csv";
    options.folder = folder.path / "federation";
    TRY(make_private_folder(options.folder));
    options.clients = 1;
    options.status = [](const std::string&) {};
    TRY_ASSIGN(const auto federation, LocalFederation::start(std::move(options)));
    std::vector<double> times;
    TRY_ASSIGN(const auto done, federation->run([&](const Json& event) {
        if (event["event"].text() == "round" && event["round"].integer() > 1) {
            times.push_back(event["seconds"].number());
        }
    }));
    federation->stop();
    if (done["state"].text() != "succeeded" || times.empty()) {
        return fail(ErrorKind::io, "bench_failed", "the rounds ended with: " + done["reason"].text());
    }
    return std::ranges::min(times);
}

/// The least rounds of one way to train.
struct Timed {
    std::string regime;
    double few = std::numeric_limits<double>::infinity();
    double many = std::numeric_limits<double>::infinity();

    Status look() {
        TRY_ASSIGN(const double of_few, round_seconds(regime, few_epochs));
        TRY_ASSIGN(const double of_many, round_seconds(regime, many_epochs));
        few = std::min(few, of_few);
        many = std::min(many, of_many);
        return {};
    }
    [[nodiscard]] double step() const {
        return (many - few) / static_cast<double>(batches * (many_epochs - few_epochs));
    }
};

}  // namespace

Result<std::vector<BenchRow>> bench_split(const BenchOptions&) {
    Timed one{"preset = \"fedavg\""};
    Timed two{"preset = \"split\"\ncut = \"relu\""};
    double hops = std::numeric_limits<double>::infinity();
    for (int pass = 0; pass < passes; ++pass) {  // in turn, for the machine is not the same all the time
        TRY(one.look());
        TRY(two.look());
        TRY_ASSIGN(const double way, stream_round_trip(split_batch * cut_width * sizeof(float)));
        hops = std::min(hops, way);
    }
    const double whole = one.step();
    const double split = two.step();
    return std::vector{
        BenchRow{"a step of the whole model in one process", 1e3 * whole, "ms",
                 "one client, one thread; of the least rounds", ""},
        BenchRow{"two hops of a message of 64 KiB", 1e3 * hops, "ms", "to another process and as much back", ""},
        BenchRow{"a step of the same model, cut", 1e3 * split, "ms", "client and host, one thread each", ""},
        BenchRow{"a cut step, of a whole one and two hops", split / (whole + hops), "x", "", "1.25 or less"}};
}

}  // namespace causeway::cli
