// Gradients against finite differences, through the backends as training uses them.
#include <cmath>

#include "tests/model/double_net.h"

namespace causeway {
namespace {

struct KeepGradient : GradientHook {
    std::vector<float> values;

    Status gradient_final(const LayerGradient& layer) override {
        const auto* from = static_cast<const float*>(layer.gradient.data);
        std::copy_n(from, layer.range.size(), values.begin() + static_cast<std::ptrdiff_t>(layer.range.begin));
        return {};
    }
};

/// The gradient of the mean loss over all examples, as the trainer computes it.
std::vector<float> gradient_of(Trainer& trainer, const Chain& chain, const ModelState& state, MemoryIo& io) {
    KeepGradient hook;
    hook.values.resize(chain.parameter_count());
    TrainJob job = make_job(chain, 0, "sgd learning_rate=0");
    job.start = state;
    job.hook = &hook;
    auto& batch = job.program.instructions[0].body[0].body;
    for (std::uint32_t layer = 0; layer < chain.layer_count(); ++layer) {
        batch.insert(batch.end() - 1, Instruction{.code = OpCode::gradient_final, .index = layer});
    }
    must(trainer.train(job, io));
    return hook.values;
}

struct GradientNet {
    std::vector<std::string> layers;
    Shape input;
    std::string loss = "cross-entropy";
};

/// Each kind of layer with parameters below it, so that its input's gradient counts, and each loss with its options.
const std::vector<GradientNet> gradient_nets = {
    {{"dense 7", "relu", "dense 3"}, {5}},
    {{"dense 7", "gelu", "dense 3"}, {5}},
    {{"dense 7", "silu", "dense 3"}, {5}},
    {{"dense 6", "layernorm", "dense 5", "relu", "layernorm", "dense 3"}, {4}},
    {{"conv 3 3x3", "conv 4 2x3 stride 2 valid", "flatten", "dense 3"}, {5, 6, 2}},
    {{"conv 4 3x2", "relu", "conv 6 3x3 pad 2 groups 2 nobias", "globalavgpool", "dense 3"}, {5, 4, 3}},
    {{"conv 3 3x3 nobias", "maxpool 2", "relu", "conv 4 3x3 stride 2", "avgpool 2", "flatten", "dense 3"}, {8, 8, 1}},
    {{"conv 4 3x3", "maxpool 3 stride 2 pad 1", "avgpool 2 stride 1", "flatten", "dense 3"}, {7, 6, 1}},
    {{"conv 4 3x3", "layernorm", "gelu", "flatten", "dense 3"}, {4, 3, 2}},
    {{"conv 6 3x3", "groupnorm 3", "relu", "flatten", "dense 3"}, {4, 4, 2}},
    {{"conv 4 3x3 nobias", "batchnorm", "relu", "globalavgpool", "dense 3"}, {4, 4, 2}},
    {{"dense 6", "batchnorm", "silu", "dense 3"}, {5}},
    {{"conv 3 3x3", "residual 3", "residual 4 stride 2", "globalavgpool", "dense 3"}, {5, 5, 1}},
    {{"conv 4 3x3", "residual 4 groupnorm 2", "residual 6 stride 2 groupnorm 3", "flatten", "dense 3"}, {5, 4, 1}},
    {{"dense 6", "gelu", "dense 3"}, {5}, "cross-entropy smoothing=0.2"},
    {{"dense 6", "gelu", "dense 3"}, {5}, "cross-entropy weights=1,2,0.5"},
    {{"dense 6", "gelu", "dense 3"}, {5}, "cross-entropy smoothing=0.1 weights=0.5,1,3"},
    {{"dense 6", "gelu", "dense 3"}, {5}, "mean-squared-error"},
    {{"dense 6", "gelu", "dense 1"}, {5}, "mean-squared-error"},
    {{"dense 6", "gelu", "dense 3"}, {5}, "binary-cross-entropy"},
};

std::string name_of_net(const GradientNet& net) {
    std::string name;
    for (const auto& layer : net.layers) {
        name += layer + "; ";
    }
    return name + net.loss;
}

/// Examples for a net; numbers as targets where its loss wants them.
MemoryIo examples_of(const Chain& chain, std::uint64_t seed) {
    MemoryIo io = clusters(7, static_cast<std::size_t>(element_count(chain.input())), 3, seed);
    RandomStream random({.seed = seed, .purpose = "test-targets"});
    const auto outputs = static_cast<std::size_t>(chain.loss().numeric() ? chain.classes() : 0);
    while (io.targets.size() < io.labels.size() * outputs) {
        io.targets.push_back(chain.loss().counts_correct() ? static_cast<float>(random.below(2))
                                                           : static_cast<float>(random.normal()));
    }
    return io;
}

/// An initial model whose norms do not start at one and zero, where a factor too many would not show.
ModelState uneven_model(const Chain& chain, std::uint64_t seed) {
    ModelState state = initial_model(chain, seed);
    RandomStream random({.seed = seed, .purpose = "test-uneven"});
    for (float& value : state.trainable.values) {
        value += static_cast<float>(0.2 * random.normal());
    }
    return state;
}

}  // namespace

TEST_CASE("each parameter's gradient is the slope of the loss written in double", "[property][gradient]") {
    const std::uint64_t seed = GENERATE(21, 22);
    for (const GradientNet& net : gradient_nets) {
        const Chain chain = make_chain(net.layers, net.input, net.loss);
        MemoryIo io = examples_of(chain, seed);
        const ModelState state = uneven_model(chain, seed);
        const DoubleNet net_in_double(net.layers, net.input, net.loss);
        const auto slopes = net_in_double.slopes({state.trainable.values.begin(), state.trainable.values.end()}, io);
        double largest = 0;
        for (const double slope : slopes) {
            largest = std::max(largest, std::abs(slope));
        }
        for (const std::string backend : {"reference", "cpu"}) {
            CAPTURE(backend, name_of_net(net), seed);
            Trainer trainer = open_trainer(backend);
            const auto gradient = gradient_of(trainer, chain, state, io);
            REQUIRE(slopes.size() == gradient.size());
            // f32 rounds to 6e-8 of the largest value on the way to a gradient; what passes a norm is multiplied by up
            // to about ten (a place whose values are nearly equal), and sums have a few hundred terms: 1e-5 of the
            // largest slope. Measured: at most a third of that, nearly always a twentieth.
            for (std::size_t i = 0; i < slopes.size(); ++i) {
                CAPTURE(i, gradient[i], slopes[i], largest);
                REQUIRE(std::abs(static_cast<double>(gradient[i]) - slopes[i]) <= 1e-5 * std::max(largest, 1e-2));
            }
        }
    }
}

TEST_CASE("along random directions the backend's own loss has the slope that its gradient says",
          "[property][gradient]") {
    const std::string backend = GENERATE("reference", "cpu");
    const std::uint64_t seed = 22;
    CAPTURE(backend, seed);
    const Chain chain = make_chain({"flatten", "dense 32", "gelu", "dense 16", "gelu", "dense 10"}, {4, 5});
    MemoryIo io = clusters(40, 20, 10, seed);
    const ModelState state = initial_model(chain, seed);
    Trainer trainer = open_trainer(backend);
    const auto gradient = gradient_of(trainer, chain, state, io);
    RandomStream random({.seed = seed, .purpose = "test-direction"});
    const double h = 1e-3;  // rounding of f32 losses costs about 1e-4, curvature less
    for (int direction = 0; direction < 10; ++direction) {
        ModelState above = state, below = state;
        double slope = 0;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
            const double along = random.normal();
            slope += along * static_cast<double>(gradient[i]);
            above.trainable.values[i] += static_cast<float>(h * along);
            below.trainable.values[i] -= static_cast<float>(h * along);
        }
        const double measured =
            (must(trainer.evaluate(chain, above, io)).loss - must(trainer.evaluate(chain, below, io)).loss) / (2 * h);
        REQUIRE(measured == Approx(slope).margin(5e-4).epsilon(2e-3));
    }
}

}  // namespace causeway
