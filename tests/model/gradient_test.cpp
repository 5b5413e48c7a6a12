// Gradients against finite differences, through the backends as training uses them.
#include <cmath>

#include "tests/model/fixtures.h"

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

double activation(double x, bool relu) {
    return relu ? std::max(x, 0.0) : 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
}

std::vector<double> affine(const std::vector<double>& x, const double* w, std::size_t outputs) {
    const double* b = w + outputs * x.size();
    std::vector<double> y(b, b + outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
        for (std::size_t i = 0; i < x.size(); ++i) {
            y[o] += w[o * x.size() + i] * x[i];
        }
    }
    return y;
}

/// The mean loss of inputs -> hidden -> activation -> classes, in double and by definition.
double loss_in_double(const std::vector<double>& theta, const MemoryIo& io, std::size_t hidden, std::size_t classes,
                      bool relu) {
    double loss = 0;
    for (std::size_t row = 0; row < io.labels.size(); ++row) {
        const auto first = io.features.begin() + static_cast<std::ptrdiff_t>(row * io.width);
        auto h = affine({first, first + static_cast<std::ptrdiff_t>(io.width)}, theta.data(), hidden);
        for (double& x : h) {
            x = activation(x, relu);
        }
        const auto scores = affine(h, theta.data() + hidden * (io.width + 1), classes);
        double sum = 0;
        for (const double score : scores) {
            sum += std::exp(score);
        }
        loss += std::log(sum) - scores[static_cast<std::size_t>(io.labels[row])];
    }
    return loss / static_cast<double>(io.labels.size());
}

}  // namespace

TEST_CASE("each parameter's gradient is the slope of the loss written in double", "[property][gradient]") {
    const std::string backend = GENERATE("reference", "cpu");
    const std::string kind = GENERATE("relu", "gelu");
    const std::uint64_t seed = 21;
    CAPTURE(backend, kind, seed);
    const std::size_t width = 5, hidden = 7, classes = 3;
    const Chain chain = make_chain({"dense 7", kind, "dense 3"}, {5});
    MemoryIo io = clusters(9, width, classes, seed);
    const ModelState state = initial_model(chain, seed);
    Trainer trainer = open_trainer(backend);
    const auto gradient = gradient_of(trainer, chain, state, io);
    std::vector<double> theta(state.trainable.values.begin(), state.trainable.values.end());
    const double h = 1e-6;  // of double: the difference is good to about 1e-9
    for (std::size_t i = 0; i < theta.size(); ++i) {
        const double kept = theta[i];
        theta[i] = kept + h;
        const double above = loss_in_double(theta, io, hidden, classes, kind == "relu");
        theta[i] = kept - h;
        const double below = loss_in_double(theta, io, hidden, classes, kind == "relu");
        theta[i] = kept;
        CAPTURE(i);
        REQUIRE(gradient[i] == Approx((above - below) / (2 * h)).margin(2e-6).epsilon(1e-4));
    }
    REQUIRE(must(trainer.evaluate(chain, state, io)).loss ==
            Approx(loss_in_double(theta, io, hidden, classes, kind == "relu")).epsilon(1e-6));
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
