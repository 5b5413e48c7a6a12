// Every layer: its text, its shapes, its gradient against the loss's own slope, and the same bits under every cut.
#include <cmath>

#include "tests/model/fixtures.h"

namespace causeway {
namespace {

struct LayersNet {
    std::vector<std::string> layers;
    Shape input;
};

/// One net per layer kind, small enough that the reference runs it hundreds of times.
const std::vector<LayersNet> layer_nets = {
    {{"conv 4 3x3", "gelu", "conv 3 3x3 stride 2", "flatten", "dense 3"}, {5, 6, 2}},
    {{"conv 4 2x3 valid", "silu", "conv 6 3x3 pad 2 groups 2 nobias", "globalavgpool", "dense 3"}, {5, 4, 3}},
    {{"conv 4 3x3", "maxpool 2", "gelu", "avgpool 2", "flatten", "dense 3"}, {8, 8, 1}},
    {{"conv 4 3x3", "maxpool 3 stride 2 pad 1", "avgpool 2 stride 1", "flatten", "dense 3"}, {7, 6, 1}},
    {{"dense 8", "layernorm", "silu", "dense 3"}, {6}},
    {{"conv 6 3x3", "groupnorm 3", "gelu", "flatten", "dense 3"}, {4, 4, 2}},
    {{"conv 6 3x3 nobias", "batchnorm", "silu", "globalavgpool", "dense 3"}, {4, 4, 2}},
    {{"conv 4 3x3", "residual 4 groupnorm 2", "residual 6 stride 2 groupnorm 3", "globalavgpool", "dense 3"},
     {6, 6, 1}},
    {{"conv 4 3x3", "residual 4", "residual 6 stride 2", "globalavgpool", "dense 3"}, {6, 6, 1}},
    {{"dense 8", "dropout 0.4", "silu", "dropout 0.2", "dense 3"}, {6}},
};

std::string name_of_layers(const LayersNet& net) {
    std::string name;
    for (const auto& layer : net.layers) {
        name += layer + "; ";
    }
    return name;
}

std::size_t width_of(const Shape& shape) {
    return static_cast<std::size_t>(element_count(shape));
}

/// Keeps every layer's gradient.
struct KeepGradients : GradientHook {
    std::vector<float> values;
    Status gradient_final(const LayerGradient& layer) override {
        const auto* from = static_cast<const float*>(layer.gradient.data);
        std::copy_n(from, layer.range.size(), values.begin() + static_cast<std::ptrdiff_t>(layer.range.begin));
        return {};
    }
};

/// A step of rate 0 over the whole set: the loss in training, and the gradient.
struct Slope {
    double loss = 0;
    std::vector<float> gradient;
};

Slope slope_of(Trainer& trainer, const Chain& chain, const ModelState& state, MemoryIo& io) {
    KeepGradients hook;
    hook.values.resize(chain.parameter_count());
    TrainJob job = make_job(chain, 0, "sgd learning_rate=0");
    job.start = state;
    job.hook = &hook;
    job.draws = {.seed = 5, .round = 2, .node = 77};
    auto& batch = job.program.instructions[0].body[0].body;
    for (std::uint32_t layer = 0; layer < chain.layer_count(); ++layer) {
        batch.insert(batch.end() - 1, Instruction{.code = OpCode::gradient_final, .index = layer});
    }
    const TrainResult result = must(trainer.train(job, io));
    return {result.loss, hook.values};
}

}  // namespace

TEST_CASE("along random directions each layer's loss has the slope that its gradient says", "[property][layers]") {
    const std::string backend = GENERATE("reference", "cpu");
    const std::uint64_t seed = 31;
    for (const LayersNet& net : layer_nets) {
        if (name_of_layers(net).find("residual") != std::string::npos) {
            continue;  // its relus open and close on the way: the golden ResNet-18 holds its gradient to much less
        }
        CAPTURE(backend, name_of_layers(net), seed);
        const Chain chain = make_chain(net.layers, net.input);
        MemoryIo io = clusters(6, width_of(net.input), 3, seed);
        const ModelState state = initial_model(chain, seed);
        Trainer trainer = open_trainer(backend);
        const Slope at = slope_of(trainer, chain, state, io);
        RandomStream random({.seed = seed, .purpose = "test-direction"});
        for (int direction = 0; direction < 4; ++direction) {
            std::vector<double> along(at.gradient.size());
            double slope = 0, length = 0;
            for (std::size_t i = 0; i < along.size(); ++i) {
                along[i] = random.normal();
                slope += along[i] * static_cast<double>(at.gradient[i]);
                length += along[i] * along[i];
            }
            const double h = 4e-3 / std::sqrt(length);
            ModelState above = state, below = state;
            for (std::size_t i = 0; i < along.size(); ++i) {
                above.trainable.values[i] += static_cast<float>(h * along[i]);
                below.trainable.values[i] -= static_cast<float>(h * along[i]);
            }
            const double measured =
                (slope_of(trainer, chain, above, io).loss - slope_of(trainer, chain, below, io).loss) / (2 * h);
            // One window whose largest place changes on the way moves the slope by a few percent.
            const double share = name_of_layers(net).find("maxpool") == std::string::npos ? 0.02 : 0.1;
            REQUIRE(measured == Approx(slope).margin(2e-4 * std::sqrt(length)).epsilon(share));
        }
    }
}

TEST_CASE("no kind of layer is left out of these tests", "[unit][layers]") {
    for (const LayerKind* kind : layer_kinds()) {
        const bool here = std::ranges::any_of(layer_nets, [&](const LayersNet& net) {
            return std::ranges::any_of(net.layers, [&](const std::string& layer) {
                return layer == kind->name || layer.starts_with(std::string(kind->name) + " ");
            });
        });
        CAPTURE(kind->name);
        CHECK((here || kind->name == "relu"));  // whose slope gradient_test.cpp holds to one written in double
    }
}

TEST_CASE("each layer computes on the cpu what the reference does", "[kernels][layers]") {
    for (const LayersNet& net : layer_nets) {
        CAPTURE(name_of_layers(net));
        const Chain chain = make_chain(net.layers, net.input);
        MemoryIo io = clusters(6, width_of(net.input), 3, 9);
        const ModelState state = initial_model(chain, 9);
        Trainer reference = open_trainer("reference"), cpu = open_trainer("cpu", 2);
        const Slope a = slope_of(reference, chain, state, io);
        const Slope b = slope_of(cpu, chain, state, io);
        REQUIRE(b.loss == Approx(a.loss).epsilon(1e-5));
        for (std::size_t i = 0; i < a.gradient.size(); ++i) {
            REQUIRE(b.gradient[i] == Approx(a.gradient[i]).margin(1e-5).epsilon(1e-3));
        }
    }
}

TEST_CASE("every net cut anywhere gives the bits of the whole one, with dropout and batch norm", "[property][layers]") {
    auto all = layer_nets;
    all.push_back({{"cnn-small 3"}, {8, 8, 1}});
    all.push_back({{"mlp 3"}, {4, 2}});
    all.push_back({{"logistic 3"}, {4, 2}});
    for (const LayersNet& net : all) {
        const Chain chain = make_chain(net.layers, net.input);
        const MemoryIo io = clusters(11, width_of(net.input), 3, 12);
        TrainJob job = make_job(chain, 12, "sgd learning_rate=0.05 momentum=0.9");
        job.draws = {.seed = 3, .round = 4, .node = 5};
        job.batch = 4;
        job.local_epochs = 2;
        Trainer trainer = open_trainer("cpu");
        MemoryIo first = io;
        const TrainResult whole = must(trainer.train(job, first));
        for (std::uint32_t cut = 1; cut < chain.layer_count(); ++cut) {
            CAPTURE(name_of_layers(net), cut);
            job.program = cut_program(chain, cut);
            MemoryIo again = io;
            const TrainResult parts = must(trainer.train(job, again));
            REQUIRE(same_bits(parts.end.trainable.values, whole.end.trainable.values));
            REQUIRE(same_bits(parts.end.buffers.values, whole.end.buffers.values));
            REQUIRE(parts.loss == whole.loss);
        }
    }
}

TEST_CASE("layers that work example by example do not care about microbatches but for rounding", "[property][layers]") {
    for (const LayersNet& net : layer_nets) {
        const Chain chain = make_chain(net.layers, net.input);
        if (chain.table().arena_size(ArenaKind::buffers) > 0) {
            continue;  // batch norm's statistics are those of the microbatch
        }
        CAPTURE(name_of_layers(net));
        const MemoryIo io = clusters(12, width_of(net.input), 3, 13);
        TrainJob job = make_job(chain, 13, "sgd learning_rate=0.05");
        job.batch = 6;
        job.draws = {.seed = 3, .round = 4, .node = 5};
        Trainer trainer = open_trainer("cpu");
        MemoryIo first = io, second = io;
        const TrainResult whole = must(trainer.train(job, first));
        auto& batch = job.program.instructions[0].body[0].body;
        const Instruction step = batch.back();
        batch.pop_back();
        batch = {make_repeat(RepeatOver::microbatches, batch), step};
        job.microbatch = 2;
        const TrainResult parts = must(trainer.train(job, second));
        for (std::size_t i = 0; i < whole.end.trainable.values.size(); ++i) {
            REQUIRE(parts.end.trainable.values[i] == Approx(whole.end.trainable.values[i]).margin(1e-5));
        }
    }
}

TEST_CASE("dropout draws by seed, round, node and step, and only in training", "[unit][layers]") {
    const Chain chain = make_chain({"dense 8", "dropout 0.5", "dense 3"}, {6});
    MemoryIo io = clusters(12, 6, 3, 13);
    TrainJob job = make_job(chain, 13, "sgd learning_rate=0.05");
    Trainer trainer = open_trainer("cpu");
    const auto loss_with = [&](const Draws& draws) {
        job.draws = draws;
        return must(trainer.train(job, io)).loss;
    };
    const double first = loss_with({.seed = 1, .round = 1, .node = 1});
    REQUIRE(loss_with({.seed = 1, .round = 1, .node = 1}) == first);
    REQUIRE(loss_with({.seed = 2, .round = 1, .node = 1}) != first);
    REQUIRE(loss_with({.seed = 1, .round = 2, .node = 1}) != first);
    REQUIRE(loss_with({.seed = 1, .round = 1, .node = 2}) != first);
    const double evaluated = must(trainer.evaluate(chain, job.start, io)).loss;
    const Chain without = make_chain({"dense 8", "dropout 0", "dense 3"}, {6});
    REQUIRE(must(trainer.evaluate(without, job.start, io)).loss == evaluated);
}

TEST_CASE("batch norm learns running statistics in training, and evaluates by them", "[unit][layers]") {
    const Chain chain = make_chain({"batchnorm", "dense 2"}, {3});
    REQUIRE(chain.table().arena_size(ArenaKind::buffers) == 6);
    MemoryIo io;
    io.width = 3;
    io.features = {1, 10, -4, 3, 10, -4, 5, 10, 2, 7, 10, 6};
    io.labels = {0, 1, 0, 1};
    TrainJob job = make_job(chain, 1, "sgd learning_rate=0");
    REQUIRE(job.start.buffers.values == std::vector<float>{0, 0, 0, 1, 1, 1});
    Trainer trainer = open_trainer("cpu");
    const ModelState end = must(trainer.train(job, io)).end;
    REQUIRE(end.buffers.values[0] == Approx(0.4));                   // 0.9 * 0 + 0.1 * 4
    REQUIRE(end.buffers.values[1] == Approx(1.0));                   // 0.1 * 10
    REQUIRE(end.buffers.values[3] == Approx(0.9 + 0.1 * 20.0 / 3));  // 20 / (4 - 1)
    REQUIRE(end.buffers.values[4] == Approx(0.9));
    const double before = must(trainer.evaluate(chain, job.start, io)).loss;
    REQUIRE(must(trainer.evaluate(chain, end, io)).loss != before);
    REQUIRE(must(trainer.evaluate(chain, end, io, 1)).loss == Approx(must(trainer.evaluate(chain, end, io, 0)).loss));
}

TEST_CASE("shapes follow the window, the stride and the padding", "[unit][layers]") {
    const auto shape = [](const std::string& layer, const Shape& input) {
        return must(must(parse_layer(layer))->infer({{DType::f32, input}})).front().shape;
    };
    REQUIRE(shape("conv 16 3x3", {8, 7, 3}) == Shape{8, 7, 16});
    REQUIRE(shape("conv 16 3x3 stride 2", {8, 7, 3}) == Shape{4, 4, 16});
    REQUIRE(shape("conv 16 5 valid", {8, 7, 3}) == Shape{4, 3, 16});
    REQUIRE(shape("conv 16 2x2", {8, 7, 3}) == Shape{8, 7, 16});
    REQUIRE(shape("maxpool 2", {8, 7, 3}) == Shape{4, 3, 3});
    REQUIRE(shape("maxpool 3 stride 2 pad 1", {8, 8, 3}) == Shape{4, 4, 3});
    REQUIRE(shape("globalavgpool", {8, 7, 3}) == Shape{3});
    REQUIRE(shape("residual 6 stride 2", {8, 8, 3}) == Shape{4, 4, 6});
}

TEST_CASE("a layer's text gives the layer back", "[unit][layers]") {
    for (const char* text :
         {"conv 16 3x3", "conv 16 3x2 stride 2 valid groups 4 nobias", "conv 8 5x5 pad 1", "maxpool 2",
          "maxpool 3 stride 2 pad 1", "avgpool 2", "globalavgpool", "dropout 0.25", "silu", "layernorm", "groupnorm 8",
          "batchnorm", "batchnorm local", "residual 64", "residual 64 local",
          "residual 8 stride 2 local", "residual 128 stride 2", "residual 64 groupnorm 8"}) {
        REQUIRE(must(parse_layer(text))->text() == text);
    }
    REQUIRE(must(parse_layer("conv 16 3 same pad 0"))->text() == "conv 16 3x3 valid");
    for (const char* text : {"conv",
                             "conv 16",
                             "conv 0 3x3",
                             "conv 16 3x",
                             "conv 16 x3",
                             "conv 16 0x3",
                             "conv 16 3x3 stride",
                             "conv 16 3x3 stride 0",
                             "conv 16 3x3 strid 2",
                             "conv 16 3x3 dilation 2",
                             "maxpool",
                             "maxpool 2 groups 2",
                             "maxpool 3 s 2",
                             "maxpool 99999",
                             "dropout",
                             "dropout 1",
                             "dropout -0.1",
                             "dropout x",
                             "groupnorm",
                             "groupnorm 0",
                             "layernorm 3",
                             "batchnorm global",
                             "batchnorm local local",
                             "residual",
                             "residual local",
                             "residual 8 groupnorm 2 local",
                             "residual 8 stride",
                             "residual 8 groupnorm 9",
                             "residual 8 twice 2",
                             "conv 16 3x3 3"}) {
        CAPTURE(text);
        const auto layer = parse_layer(text);
        REQUIRE_FALSE(layer);
        REQUIRE(layer.error().code == "bad_layer");
    }
}

TEST_CASE("a layer that cannot take its input says what it takes", "[unit][layers]") {
    const auto message = [](const std::string& layer, const Shape& input) {
        return must(parse_layer(layer))->infer({{DType::f32, input}}).error().message;
    };
    REQUIRE_THAT(message("conv 4 3x3", {64}), Catch::Contains("[height, width, channels]"));
    REQUIRE_THAT(message("conv 4 5x5 valid", {4, 4, 1}), Catch::Contains("larger than the image"));
    REQUIRE_THAT(message("conv 4 3x3 groups 3", {4, 4, 6}), Catch::Contains("groups"));
    REQUIRE_THAT(message("maxpool 2 pad 2", {4, 4, 6}), Catch::Contains("padding"));
    REQUIRE_THAT(message("groupnorm 4", {4, 4, 6}), Catch::Contains("divide"));
    REQUIRE_THAT(message("globalavgpool", {6}), Catch::Contains("image"));
}

TEST_CASE("a preset is its layers written out, and asks for its outputs", "[unit][layers]") {
    const Chain chain = make_chain({"cnn-small 10"}, {8, 8, 1});
    REQUIRE(chain.layer_count() == 10);
    REQUIRE(chain == make_chain({"conv 16 3x3", "relu", "maxpool 2", "conv 32 3x3", "relu", "maxpool 2", "flatten",
                                 "dense 64", "relu", "dense 10"},
                                {8, 8, 1}));
    const Chain resnet = make_chain({"resnet-18 10"}, {32, 32, 3});
    REQUIRE(resnet.parameter_count() == 11'173'962);  // torchvision's count for this shape
    REQUIRE(must(Chain::from_architecture(resnet.architecture())) == resnet);
    for (const char* text : {"resnet-18", "mlp x", "mlp 0", "mlp 10 10"}) {
        const auto wrong = Chain::parse({text}, {32, 32, 3}, "cross-entropy");
        REQUIRE_FALSE(wrong);
        REQUIRE(wrong.error().at(0).layer == 0);
    }
}

}  // namespace causeway
