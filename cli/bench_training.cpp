// Benchmarks of the training engine: steps of three networks beside their targets, and a CNN on images of one's own.
//
// The targets were set on a processor whose fused multiply-adds give 268 GFLOP/s a core (f32). On another machine the
// bound moves with that figure, so the bench measures it too: a large matrix product is within a few percent of it.
// Times are the least of many: what else runs on the machine can only add. Thread: the command's.
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "cli/bench.h"
#include "common/random.h"
#include "configs/batches.h"
#include "data/reader.h"
#include "model/initialise.h"
#include "split/flow.h"

namespace causeway::cli {
namespace {

/// A network, its batch, and what a step should take on the machine of the targets with two threads.
struct Workload {
    std::string_view name;
    std::vector<std::string> layers;
    Shape input;
    std::uint32_t batch;
    int steps;
    std::string_view optimizer;
    std::string_view target;
    double forward;  // multiplications and additions of one example
    double first;    // those of the first layer, whose input needs no gradient
};

/// The backward pass costs twice the forward pass, but for the input's gradient.
double step_flops(const Workload& work) {
    return (3 * work.forward - work.first) * work.batch;
}

const std::vector<Workload>& workloads() {
    static const std::vector<Workload> list = {
        {"mlp 784-512-512-10, batch 128, SGD momentum",
         {"dense 512", "relu", "dense 512", "relu", "dense 10"},
         {784},
         128,
         40,
         "sgd learning_rate=0.01 momentum=0.9",
         "1.05",
         2.0 * (784 * 512 + 512 * 512 + 512 * 10),
         2.0 * 784 * 512},
        {"cnn 32-64-fc128-fc10, 28x28, batch 64, SGD",
         {"conv 32 3x3", "relu", "maxpool 2", "conv 64 3x3", "relu", "maxpool 2", "flatten", "dense 128", "relu",
          "dense 10"},
         {28, 28, 1},
         64,
         20,
         "sgd learning_rate=0.01",
         "5.2",
         2.0 * (784.0 * 32 * 9 + 196.0 * 64 * 9 * 32 + 3136.0 * 128 + 1280),
         2.0 * 784.0 * 32 * 9},
        {"resnet-18 (CIFAR shape), batch 64, SGD momentum",
         {"resnet-18 10"},
         {32, 32, 3},
         64,
         1,
         "sgd learning_rate=0.01 momentum=0.9",
         "0.6 x PyTorch",
         2.0 * 555.4e6,
         2.0 * 1024 * 64 * 27},
    };
    return list;
}

std::vector<float> random_inputs(std::size_t count) {
    RandomStream random({.seed = 1, .purpose = "bench"});
    std::vector<float> values(count);
    for (auto& value : values) {
        value = static_cast<float>(random.uniform() - 0.5);
    }
    return values;
}

Dataset random_dataset(std::size_t examples, const Shape& shape, std::uint32_t classes) {
    Dataset dataset;
    dataset.name = "random";
    dataset.shape = shape;
    dataset.classes = classes;
    dataset.features = random_inputs(examples * static_cast<std::size_t>(element_count(shape)));
    for (std::size_t i = 0; i < examples; ++i) {
        dataset.labels.push_back(static_cast<std::uint32_t>(i % classes));
    }
    return dataset;
}

/// Seconds of the fastest of `repeats` calls, after one that is not counted: other work on the machine only adds.
double least_seconds(int repeats, const std::function<void()>& call) {
    call();
    double least = 1e9;
    for (int i = 0; i < repeats; ++i) {
        const auto begin = real_now();
        call();
        least = std::min(least, seconds(real_now() - begin));
    }
    return least;
}

/// Seconds of a product with plain weights, with packed ones, and of packing them.
struct ProductTimes {
    double plain = 0, packed = 0, packing = 0;
};

Result<ProductTimes> time_product(const ops::MatmulShape& shape, int threads) {
    TRY_ASSIGN(const auto device, Device::open("auto", {.threads = threads}));
    TRY_ASSIGN(auto plan, device.prepare(ops::matmul(shape, ops::Bias::absent)));
    const auto x = random_inputs(static_cast<std::size_t>(shape.batch * shape.inputs));
    const auto w = random_inputs(static_cast<std::size_t>(shape.outputs * shape.inputs));
    std::vector<float> y(static_cast<std::size_t>(shape.batch * shape.outputs));
    constexpr int repeats = 100;
    ProductTimes times;
    times.plain = least_seconds(repeats, [&] { std::ignore = plan.run({x, w, y}); });
    times.packed = times.plain;
    if (plan.packed_bytes() > 0) {
        TRY_ASSIGN(const auto packed, device.allocate(plan.packed_bytes()));
        times.packing = least_seconds(repeats, [&] { std::ignore = plan.pack(w, packed.get()); });
        times.packed = least_seconds(repeats, [&] { std::ignore = plan.run_packed({x, w, y}, packed.get()); });
    }
    return times;
}

std::string threads_text(int threads) {
    return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

/// What the processor gives in a large product, and how much of that a small one gets. Returns the former in GFLOP/s.
Result<double> product_rows(int threads, std::vector<BenchRow>& rows) {
    const auto rate = [](const ops::MatmulShape& shape, double time) {
        return 2e-9 * static_cast<double>(shape.batch * shape.inputs * shape.outputs) / time;
    };
    constexpr ops::MatmulShape large{512, 1024, 1024}, small{64, 1024, 1024};
    TRY_ASSIGN(const auto of_large, time_product(large, threads));
    TRY_ASSIGN(const auto of_small, time_product(small, threads));
    const double packed = rate(small, of_small.packed);
    const double peak = std::max(rate(large, of_large.packed), packed);  // other work disturbs the longer one more
    rows.push_back({"product 512x1024x1024, packed weights, " + threads_text(threads), rate(large, of_large.packed),
                    "GFLOP/s", "what the processor gives", ""});
    rows.push_back({"product 64x1024x1024, packed weights, " + threads_text(threads), packed, "GFLOP/s",
                    fmt::format("{:.0f} % of that; plain weights {:.1f}; packing {:.2f} ms, the product {:.2f}",
                                100 * packed / peak, rate(small, of_small.plain), 1e3 * of_small.packing,
                                1e3 * of_small.packed),
                    "85 % of the peak"});
    return peak;
}

/// The peak of resident memory is counted anew from here (Linux, proc(5): clear_refs).
void reset_peak_memory() {
    ::malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;
}
/// MiB, since the last reset.
double peak_memory() {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("VmHWM:")) {
            return std::stod(line.substr(6)) / 1024;
        }
    }
    return 0;
}

Result<TrainJob> job_of(const Workload& work) {
    const auto chain = Chain::parse(work.layers, work.input, "cross-entropy");
    ASSERT(chain.has_value());
    TRY_ASSIGN(const auto program, compile_flow("local-epochs", {.chain = *chain, .cell = whole_chain(*chain)}));
    TRY_ASSIGN(const auto optimizer, parse_optimizer(work.optimizer));
    TrainJob job{.program = program, .chain = *chain, .start = initial_model(*chain, 1), .optimizer = optimizer};
    job.batch = work.batch;
    return job;
}

/// A step's time and its memory, two rows. `f32_ms` is the time in f32 once it is known.
Result<std::vector<BenchRow>> step_rows(const Workload& work, int threads, double peak, Compute compute,
                                        double& f32_ms) {
    reset_peak_memory();
    TRY_ASSIGN(auto device, Device::open("auto", {.threads = threads}));
    Trainer trainer(std::move(device));
    TRY_ASSIGN(auto job, job_of(work));
    job.optimizer.rule.compute = compute;
    const auto dataset = random_dataset(work.batch * static_cast<std::size_t>(work.steps), work.input, 10);
    Status trained;
    const double time = least_seconds(work.steps == 1 ? 5 : 15, [&] {
        TrainingBatches batches(dataset, work.batch, {});
        const auto result = trainer.train(job, batches);
        trained = result ? trained : Status(fail(result.error()));
    });
    TRY(trained);
    const bool in_f32 = compute == Compute::f32;
    const auto how = in_f32 ? std::string() : fmt::format(" {},", to_string(compute));
    const auto name = fmt::format("{},{} {}", work.name, how, threads_text(threads));
    const double step = 1e3 * time / work.steps;
    const double least = step_flops(work) / peak * 1e-6;
    f32_ms = in_f32 ? step : f32_ms;
    return std::vector{
        BenchRow{.what = name,
                 .value = step,
                 .unit = "ms",
                 .note = in_f32 ? fmt::format("the arithmetic alone: {:.2f} ms at {:.0f} GFLOP/s, {:.0f} % of it",
                                              least, peak, 100 * least / step)
                                : fmt::format("{:.2f} times f32", f32_ms / step),
                 .target = compute == Compute::bf16 ? "1.4 times f32" : threads == 2 ? std::string(work.target) : ""},
        BenchRow{.what = name + ", memory", .value = peak_memory(), .unit = "MiB", .note = "peak of the process",
                 .target = ""}};
}

/// What a program costs beside its instructions: finding the next one, taking its time, telling of progress. On the
/// network with the shortest steps here, in the middle of several runs.
Result<BenchRow> program_row(const Workload& work, int threads) {
    TRY_ASSIGN(auto device, Device::open("auto", {.threads = threads}));
    Trainer trainer(std::move(device));
    TRY_ASSIGN(auto job, job_of(work));
    job.clock = real_now;
    const auto dataset = random_dataset(work.batch * static_cast<std::size_t>(work.steps), work.input, 10);
    std::vector<double> shares;
    for (int run = 0; run < 15; ++run) {
        TrainingBatches batches(dataset, work.batch, {});
        TRY_ASSIGN(auto training, trainer.begin(job, batches));
        const auto begin = real_now();
        TRY(training.advance());
        const double all = seconds(real_now() - begin);
        TRY_ASSIGN(const auto result, training.result());
        shares.push_back(100 * (1 - std::accumulate(result.seconds.begin(), result.seconds.end(), 0.0) / all));
    }
    std::ranges::nth_element(shares, shares.begin() + 7);
    return BenchRow{.what = fmt::format("a program beside its instructions, {}, {}", work.name, threads_text(threads)),
                    .value = shares[7],
                    .unit = "%",
                    .note = "of a step",
                    .target = "2"};
}

/// Images [begin, end) of a dataset.
Dataset part_of(const Dataset& whole, std::size_t begin, std::size_t end) {
    Dataset part = whole;
    const auto size = static_cast<std::ptrdiff_t>(whole.example_size());
    const auto first = static_cast<std::ptrdiff_t>(begin), last = static_cast<std::ptrdiff_t>(end);
    part.features.assign(whole.features.begin() + first * size, whole.features.begin() + last * size);
    part.labels.assign(whole.labels.begin() + first, whole.labels.begin() + last);
    return part;
}

}  // namespace

Result<std::vector<BenchRow>> bench_training(const BenchOptions& options) {
    std::vector<BenchRow> rows;
    const std::vector<int> counts = options.threads > 0 ? std::vector{options.threads} : std::vector{1, 2};
    for (const int threads : counts) {
        TRY_ASSIGN(const double peak, product_rows(threads, rows));
        TRY_ASSIGN(const auto device, Device::open("auto", {.threads = threads}));
        for (const auto& work : workloads()) {
            double f32_ms = 0;
            for (const Compute compute : all_computes) {
                if (work.name.find(options.rows) == std::string_view::npos || !device.check(compute) ||
                    (compute == Compute::winograd && work.input.size() == 1)) {
                    continue;
                }
                TRY_ASSIGN(auto measured, step_rows(work, threads, peak, compute, f32_ms));
                std::ranges::move(measured, std::back_inserter(rows));
            }
            if (&work == &workloads().front() && work.name.find(options.rows) != std::string_view::npos) {
                TRY_ASSIGN(rows.emplace_back(), program_row(work, threads));
            }
        }
    }
    return rows;
}

/// Four fifths train for five epochs, the rest is held out; on 10,000 images of MNIST the target is 0.975.
Result<std::vector<BenchRow>> bench_images(const BenchOptions& options) {
    if (options.data.empty()) {
        return std::vector{BenchRow{"skipped", 0, "", "needs images: --data FOLDER with IDX images and labels"}};
    }
    TRY_ASSIGN(const auto dataset, read_dataset(options.data, {.label = "", .shape = {28, 28, 1},
                                                               .scale = Scale{{0, 255}, {0, 1}}}));
    const std::size_t cut = dataset.size() * 4 / 5;
    const auto training = part_of(dataset, 0, cut), held_out = part_of(dataset, cut, dataset.size());
    Workload work = workloads()[1];
    work.optimizer = "sgd learning_rate=0.05 momentum=0.9 schedule=cosine rounds=5 factor=0.05";
    work.batch = 32;
    TRY_ASSIGN(auto job, job_of(work));
    TRY_ASSIGN(auto device, Device::open("auto", {.threads = 2}));
    Trainer trainer(std::move(device));
    std::vector<BenchRow> rows;
    const auto begin = real_now();
    for (std::uint64_t epoch = 1; epoch <= 5; ++epoch) {
        TrainingBatches batches(training, job.batch, {.seed = 1, .round = epoch});
        job.draws.round = epoch;
        TRY_ASSIGN(auto result, trainer.train(job, batches));
        job.start = std::move(result.end);
        job.optimizer_state = std::move(result.optimizer_state);
        EvaluationBatches evaluation(held_out);
        TRY_ASSIGN(const auto found, trainer.evaluate(job.chain, job.start, evaluation));
        rows.push_back({fmt::format("accuracy after {} epoch{}", epoch, epoch == 1 ? "" : "s"), found.accuracy, "",
                        fmt::format("{} images trained, {} held out", cut, dataset.size() - cut)});
    }
    rows.back().note += fmt::format("; target 0.975; {:.1f} s in all", seconds(real_now() - begin));
    return rows;
}

}  // namespace causeway::cli
