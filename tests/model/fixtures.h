// What the tests of model/ share: small chains, examples in memory, and bits of models.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "common/random.h"
#include "model/initialise.h"
#include "model/trainer.h"

namespace causeway {

inline Chain make_chain(const std::vector<std::string>& layers, const Shape& input,
                        std::string_view loss = "cross-entropy") {
    auto chain = Chain::parse(layers, input, loss);
    for (const LayerError& error : chain ? std::vector<LayerError>{} : chain.error()) {
        UNSCOPED_INFO(error.layer << ": " << error.message);
    }
    REQUIRE(chain);
    return *chain;
}

template <class T>
T must(Result<T> result) {
    if (!result) {
        FAIL(result.error().message);
    }
    return *std::move(result);
}
inline void must(const Status& status) {
    if (!status) {
        FAIL(status.error().message);
    }
}

/// Examples in memory, in the same order in every epoch.
struct MemoryIo : TrainerIo {
    std::size_t width = 1;
    std::vector<float> features;
    std::vector<std::int64_t> labels;
    std::vector<float> targets;  // empty: the labels serve
    std::vector<BatchPlace> asked;
    std::vector<double> losses;
    std::uint64_t stop_after = UINT64_MAX;

    std::uint64_t examples() const override { return labels.size(); }
    Status load(const BatchPlace& place, std::span<float> into, std::span<std::int64_t> into_labels) override {
        asked.push_back(place);
        std::copy_n(features.begin() + static_cast<std::ptrdiff_t>(place.first * width), into.size(), into.begin());
        std::copy_n(labels.begin() + static_cast<std::ptrdiff_t>(place.first), into_labels.size(), into_labels.begin());
        return {};
    }
    Status load_targets(const BatchPlace& place, std::span<float> into, std::span<float> into_targets) override {
        if (targets.empty()) {
            return TrainerIo::load_targets(place, into, into_targets);
        }
        std::vector<std::int64_t> ignored(place.rows);
        TRY(load(place, into, ignored));
        const std::uint64_t first = place.first * (into_targets.size() / place.rows);
        std::copy_n(targets.begin() + static_cast<std::ptrdiff_t>(first), into_targets.size(), into_targets.begin());
        return {};
    }
    void progress(std::uint64_t, std::uint64_t, double loss) override { losses.push_back(loss); }
    bool stop_requested() const override { return losses.size() >= stop_after; }
};

/// Gaussian clusters, one per class, far enough apart to be learned.
inline MemoryIo clusters(std::size_t examples, std::size_t width, std::size_t classes, std::uint64_t seed) {
    RandomStream random({.seed = seed, .purpose = "test-clusters"});
    std::vector<double> centres(classes * width);
    for (double& centre : centres) {
        centre = random.normal();
    }
    MemoryIo io;
    io.width = width;
    for (std::size_t i = 0; i < examples; ++i) {
        const std::size_t label = random.below(classes);
        io.labels.push_back(static_cast<std::int64_t>(label));
        for (std::size_t k = 0; k < width; ++k) {
            io.features.push_back(static_cast<float>(centres[label * width + k] + 0.3 * random.normal()));
        }
    }
    return io;
}

inline Trainer open_trainer(const std::string& backend, int threads = 1) {
    return Trainer(must(Device::open(backend, {.threads = threads})));
}

inline Program plain_program(const Chain& chain) {
    const LayerInterval all{0, static_cast<std::uint32_t>(chain.layer_count())};
    return {{make_repeat(RepeatOver::epochs, {make_repeat(RepeatOver::batches, {{.code = OpCode::load},
                                                                                make_forward(all),
                                                                                {.code = OpCode::loss},
                                                                                make_backward(all),
                                                                                make_step(all)})})}};
}

/// The plain program with its forward and backward cut at a layer.
inline Program cut_program(const Chain& chain, std::uint32_t cut) {
    const auto end = static_cast<std::uint32_t>(chain.layer_count());
    Program program = plain_program(chain);
    program.instructions[0].body[0].body = {{.code = OpCode::load}, make_forward({0, cut}),    make_forward({cut, end}),
                                            {.code = OpCode::loss}, make_backward({cut, end}), make_backward({0, cut}),
                                            make_step({cut, end}),  make_step({0, cut})};
    return program;
}

inline TrainJob make_job(const Chain& chain, std::uint64_t seed, const std::string& optimizer) {
    return {.program = plain_program(chain),
            .chain = chain,
            .start = initial_model(chain, seed),
            .optimizer = must(parse_optimizer(optimizer))};
}

/// Equality of bits: NaNs and signed zeros count.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace causeway
