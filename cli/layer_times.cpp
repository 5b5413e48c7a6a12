// See layer_times.h.
#include "cli/layer_times.h"

#include <algorithm>

#include "common/random.h"
#include "model/initialise.h"
#include "model/trainer.h"

namespace causeway::cli {
namespace {

constexpr std::uint64_t least_passes = 3;
constexpr std::uint64_t most_passes = 200;

/// Random examples, the same for every batch: values do not change how long layers take.
class RandomExamples : public TrainerIo {
public:
    RandomExamples(const Chain& chain, std::uint64_t batch, std::uint64_t passes)
        : classes_(static_cast<std::uint64_t>(chain.classes())), examples_(batch * passes) {
        RandomStream random({.purpose = "layer-times"});
        values_.resize(batch * static_cast<std::size_t>(element_count(chain.input())));
        for (auto& value : values_) {
            value = static_cast<float>(random.uniform());
        }
    }
    [[nodiscard]] std::uint64_t examples() const override { return examples_; }
    Status load(const BatchPlace& place, std::span<float> features, std::span<std::int64_t> labels) override {
        std::copy_n(values_.begin(), features.size(), features.begin());
        for (std::size_t i = 0; i < labels.size(); ++i) {
            labels[i] = static_cast<std::int64_t>((place.first + i) % classes_);
        }
        return {};
    }
    Status load_targets(const BatchPlace&, std::span<float> features, std::span<float> targets) override {
        std::copy_n(values_.begin(), features.size(), features.begin());
        std::ranges::fill(targets, 0.0F);
        return {};
    }

private:
    std::vector<float> values_;
    std::uint64_t classes_;
    std::uint64_t examples_;
};

/// load, forward of each layer, loss, backward of each from the last, step of each: 2 + 3 layers instructions.
Program layer_by_layer(std::uint32_t layers) {
    std::vector<Instruction> batch{{.code = OpCode::load}};
    for (std::uint32_t i = 0; i < layers; ++i) {
        batch.push_back(make_forward({i, i + 1}));
    }
    batch.push_back({.code = OpCode::loss});
    for (std::uint32_t i = layers; i > 0; --i) {
        batch.push_back(make_backward({i - 1, i}));
    }
    for (std::uint32_t i = 0; i < layers; ++i) {
        batch.push_back(make_step({i, i + 1}));
    }
    return {{make_repeat(RepeatOver::epochs, {make_repeat(RepeatOver::batches, std::move(batch))})}};
}

/// Seconds of each instruction of the batch, pass after pass.
using Passes = std::vector<std::vector<double>>;

Result<Passes> run_passes(Trainer& trainer, const Chain& chain, const OptimizerSpec& optimizer, std::uint32_t batch,
                          std::uint64_t passes) {
    const auto layers = static_cast<std::uint32_t>(chain.layer_count());
    std::vector<Instant> reads;
    TrainJob job{.program = layer_by_layer(layers),
                 .chain = chain,
                 .segment = {},
                 .start = initial_model(chain, 1),
                 .optimizer = optimizer,
                 .optimizer_state = {},
                 .batch = batch,
                 .local_epochs = 1,
                 .draws = {}};
    job.clock = [&reads] { return reads.emplace_back(real_now()); };
    RandomExamples examples(chain, batch, passes);
    TRY(trainer.train(std::move(job), examples));
    const std::size_t instructions = 2 + 3 * static_cast<std::size_t>(layers);
    ASSERT(reads.size() == 2 * instructions * passes);
    Passes all(passes, std::vector<double>(instructions));
    for (std::size_t i = 0; i < instructions * passes; ++i) {
        all[i / instructions][i % instructions] = seconds(reads[2 * i + 1] - reads[2 * i]);
    }
    return all;
}

double median_time(const Passes& passes, std::size_t instruction) {
    std::vector<double> times;
    for (const auto& pass : passes) {
        times.push_back(pass[instruction]);
    }
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
}

}  // namespace

Result<LayerTimes> measure_layers(const Chain& chain, const OptimizerSpec& optimizer, std::uint32_t batch,
                                  Duration budget) {
    TRY_ASSIGN(auto device, Device::open("auto"));
    Trainer trainer(std::move(device));
    TRY(run_passes(trainer, chain, optimizer, batch, 1));  // prepares what is prepared once
    const auto begun = real_now();
    TRY(run_passes(trainer, chain, optimizer, batch, 1));
    const double one = std::max(seconds(real_now() - begun), 1e-6);
    const auto passes = std::clamp(static_cast<std::uint64_t>(seconds(budget) / one), least_passes, most_passes);
    TRY_ASSIGN(const auto all, run_passes(trainer, chain, optimizer, batch, passes));
    const auto layers = chain.layer_count();
    LayerTimes times;
    for (std::size_t i = 0; i < layers; ++i) {
        times.forward.push_back(median_time(all, 1 + i));
        times.backward.push_back(median_time(all, 2 + layers + (layers - 1 - i)));
        times.step.push_back(median_time(all, 2 + 2 * layers + i));
    }
    times.loss = median_time(all, 1 + layers);
    return times;
}

}  // namespace causeway::cli
