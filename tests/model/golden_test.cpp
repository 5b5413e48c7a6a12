// ResNet-18 against numbers that an independent program made once: tests/golden/resnet18.py, in double with numpy.
//
// Parameters and images are an integer hash in both, so the file holds only results: the loss, and for each
// tensor the length of its gradient and its product with the hash.
#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/model/fixtures.h"

namespace causeway {
namespace {

double noise(std::uint64_t stream, std::uint64_t place) {
    std::uint64_t x = (place * 2654435761u + stream * 40503u + 12345u) % (std::uint64_t{1} << 32);
    x ^= x >> 16;
    x = x * 2246822519u % (std::uint64_t{1} << 32);
    x ^= x >> 13;
    return static_cast<double>(x) * 0x1p-31 - 1;
}

struct GoldenTensor {
    std::uint64_t size = 0;
    double length = 0, product = 0;
};
struct Golden {
    double loss = 0;
    std::vector<GoldenTensor> tensors;
};

Golden read_golden() {
    std::ifstream file(CAUSEWAY_GOLDEN_RESNET18);
    REQUIRE(file.good());
    Golden golden;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        words >> word;
        if (word == "loss") {
            words >> golden.loss;
        } else {
            GoldenTensor tensor;
            words >> tensor.size >> tensor.length >> tensor.product;
            golden.tensors.push_back(tensor);
        }
    }
    return golden;
}

/// The parameters as the program has them: norms around 1 and 0, weights by their inputs, the last bias small.
ModelState golden_model(const Chain& chain) {
    ModelState state = initial_model(chain, 1);
    std::uint64_t stream = 0;
    for (const TensorInfo& tensor : chain.table().tensors) {
        if (tensor.arena != ArenaKind::trainable) {
            continue;
        }
        ++stream;
        const auto inputs = element_count(tensor.shape) / tensor.shape[0];
        const bool vector = tensor.shape.size() == 1;
        const bool gamma = vector && tensor.name.ends_with("weight");
        const double scale = vector ? 0.1 : std::sqrt(3.0 / static_cast<double>(inputs));
        auto values = state.trainable.view(tensor);
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<float>(noise(stream, i) * scale + (gamma ? 1.0 : 0.0));
        }
    }
    return state;
}

struct KeepAll : GradientHook {
    std::vector<float> values;
    Status gradient_final(const LayerGradient& layer) override {
        const auto* from = static_cast<const float*>(layer.gradient.data);
        std::copy_n(from, layer.range.size(), values.begin() + static_cast<std::ptrdiff_t>(layer.range.begin));
        return {};
    }
};

}  // namespace

TEST_CASE("ResNet-18's loss and the gradient of each of its tensors are those of an independent program", "[golden]") {
    const Golden golden = read_golden();
    const Chain chain = make_chain({"resnet-18 10"}, {32, 32, 3});
    MemoryIo io;
    io.width = 32 * 32 * 3;
    io.labels = {3, 7};
    for (std::size_t i = 0; i < 2 * io.width; ++i) {
        io.features.push_back(static_cast<float>(noise(1000, i)));
    }
    TrainJob job = make_job(chain, 1, "sgd learning_rate=0");
    job.start = golden_model(chain);
    KeepAll hook;
    hook.values.resize(chain.parameter_count());
    job.hook = &hook;
    auto& batch = job.program.instructions[0].body[0].body;
    for (std::uint32_t layer = 0; layer < chain.layer_count(); ++layer) {
        batch.insert(batch.end() - 1, Instruction{.code = OpCode::gradient_final, .index = layer});
    }
    Trainer trainer = open_trainer("cpu");
    REQUIRE(must(trainer.train(job, io)).loss == Approx(golden.loss).epsilon(1e-5));
    std::size_t index = 0;
    for (const TensorInfo& tensor : chain.table().tensors) {
        if (tensor.arena != ArenaKind::trainable) {
            continue;
        }
        const GoldenTensor& wanted = golden.tensors.at(index++);
        double squares = 0, product = 0;
        for (std::uint64_t i = 0; i < tensor.range().size(); ++i) {
            const double g = hook.values[tensor.offset + i];
            squares += g * g;
            product += g * noise(index + 2000, i);
        }
        CAPTURE(tensor.name);
        REQUIRE(tensor.range().size() == wanted.size);
        REQUIRE(std::sqrt(squares) == Approx(wanted.length).epsilon(1e-3));
        REQUIRE(product == Approx(wanted.product).margin(2e-3 * wanted.length));
    }
    REQUIRE(index == golden.tensors.size());
}

}  // namespace causeway
