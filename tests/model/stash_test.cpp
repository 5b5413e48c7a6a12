// Several versions of the parameters at once: a program that stashes passes against a loop that is written here.
//
// With `stash K` the gradient of a batch is taken at the parameters that its forward saw, K steps old by the time of
// its own step. The loop keeps those versions itself, asks the trainer for each gradient alone, and steps by hand.
#include <deque>

#include "tests/model/fixtures.h"

namespace causeway {
namespace {

constexpr float rate = 0.1f, momentum = 0.5f;
constexpr std::uint32_t batch = 4, epochs = 2;
constexpr std::size_t examples = 18, batches = 5;  // the last one is short

TrainJob stash_job_of(const Chain& chain, const std::string& optimizer) {
    TrainJob job = make_job(chain, 71, optimizer);
    job.batch = batch;
    job.local_epochs = epochs;
    job.draws = {.seed = 3, .round = 4, .node = 5};
    return job;
}

/// load, forward, `stash K`, and then what is late; the forward and the late half may each be in two pieces.
Program stashing_program(const Chain& chain, std::uint32_t passes, std::uint32_t cut) {
    const auto end = static_cast<std::uint32_t>(chain.layer_count());
    std::vector<Instruction> list{{.code = OpCode::load}};
    if (cut > 0) {
        list.push_back(make_forward({0, cut}));
    }
    list.push_back(make_forward({cut, end}));
    if (passes > 0) {
        list.push_back(make_stash(passes));
    }
    list.push_back({.code = OpCode::loss});
    list.push_back(make_backward({cut, end}));
    if (cut > 0) {
        list.push_back(make_backward({0, cut}));
    }
    list.push_back(make_step({0, end}));
    return {{make_repeat(RepeatOver::epochs, {make_repeat(RepeatOver::batches, list)})}};
}

/// Keeps the gradient of the nth batch of a run.
struct KeepOne : GradientHook {
    std::size_t wanted = 0, layers = 0, calls = 0;
    std::vector<float> values;

    Status gradient_final(const LayerGradient& layer) override {
        if (calls++ / layers == wanted) {
            const auto* from = static_cast<const float*>(layer.gradient.data);
            std::copy_n(from, layer.range.size(), values.begin() + static_cast<std::ptrdiff_t>(layer.range.begin));
        }
        return {};
    }
};

/// Of batch `number`, counted through the epochs, at these parameters: with that batch's own dropout.
std::vector<float> gradient_at(Trainer& trainer, const Chain& chain, const std::vector<float>& parameters, MemoryIo& io,
                               std::size_t number) {
    KeepOne hook;
    hook.wanted = number;
    hook.values.resize(chain.parameter_count());
    TrainJob job = stash_job_of(chain, "sgd learning_rate=0");
    job.start.trainable.values = parameters;
    job.hook = &hook;
    auto& body = job.program.instructions[0].body[0].body;
    for (std::uint32_t layer = 0; layer < chain.layer_count(); ++layer) {
        if (chain.arena_range(ArenaKind::trainable, layer, layer + 1).size() > 0) {
            body.insert(body.end() - 1, Instruction{.code = OpCode::gradient_final, .index = layer});
            ++hook.layers;
        }
    }
    must(trainer.train(job, io));
    return hook.values;
}

/// The definition: forwards see today's parameters, steps are so many batches late.
std::vector<float> by_hand(Trainer& trainer, const Chain& chain, MemoryIo& io, std::size_t passes) {
    std::vector<float> theta = initial_model(chain, 71).trainable.values, velocity(theta.size());
    std::deque<std::vector<float>> waiting;  // gradients, each at the version that its forward saw
    const auto step = [&] {
        for (std::size_t i = 0; i < theta.size(); ++i) {
            velocity[i] = momentum * velocity[i] + waiting.front()[i];
            theta[i] -= rate * velocity[i];
        }
        waiting.pop_front();
    };
    for (std::size_t number = 0; number < epochs * batches; ++number) {
        waiting.push_back(gradient_at(trainer, chain, theta, io, number));
        if (waiting.size() > passes) {
            step();
        }
    }
    while (!waiting.empty()) {
        step();
    }
    return theta;
}

}  // namespace

TEST_CASE("a program that stashes passes keeps a version of the parameters for each batch in flight, bit for bit",
          "[property][stash]") {
    const std::uint32_t passes = GENERATE(0u, 1u, 2u, 4u, 9u, 16u);  // 16: more than there are batches
    CAPTURE(passes);
    const Chain chain = make_chain({"dense 9", "gelu", "dropout 0.3", "dense 7", "relu", "dense 3"}, {6});
    MemoryIo io = clusters(examples, 6, 3, 71);
    Trainer trainer = open_trainer("cpu");
    const auto expected = by_hand(trainer, chain, io, passes);
    TrainJob job = stash_job_of(chain, "sgd learning_rate=0.1 momentum=0.5");
    for (const std::uint32_t cut : {0u, 2u, 4u}) {
        CAPTURE(cut);
        job.program = stashing_program(chain, passes, cut);
        const TrainResult result = must(trainer.train(job, io));
        CHECK(same_bits(result.end.trainable.values, expected));
        CHECK(result.steps == epochs * batches);
        CHECK(result.examples == epochs * examples);
    }
    const auto none = by_hand(trainer, chain, io, 0);
    CHECK((passes == 0) == same_bits(none, expected));
}

TEST_CASE("what stays inside layers belongs to its batch: norms, windows and blocks, late as on time",
          "[property][stash]") {
    const Chain chain = make_chain({"conv 4 3x3", "batchnorm", "relu", "maxpool 2", "residual 6 stride 2 groupnorm 3",
                                    "dropout 0.2", "flatten", "dense 3"},
                                   {6, 6, 1});
    MemoryIo io = clusters(examples, 36, 3, 72);
    Trainer trainer = open_trainer("cpu");
    TrainJob job = stash_job_of(chain, "sgd learning_rate=0.1 momentum=0.5");
    for (const std::uint32_t passes : {0u, 1u, 3u}) {
        CAPTURE(passes);
        const auto expected = by_hand(trainer, chain, io, passes);
        job.program = stashing_program(chain, passes, 4);
        CHECK(same_bits(must(trainer.train(job, io)).end.trainable.values, expected));
    }
}

TEST_CASE("a run that stashes leaves nothing behind for the next one on the same memory", "[unit][stash]") {
    const Chain chain = make_chain({"dense 9", "gelu", "dense 3"}, {6});
    MemoryIo io = clusters(examples, 6, 3, 73);
    Trainer trainer = open_trainer("cpu"), fresh = open_trainer("cpu");
    TrainJob late = stash_job_of(chain, "sgd learning_rate=0.1 momentum=0.5");
    TrainJob plain = late;
    late.program = stashing_program(chain, 3, 0);
    const TrainResult first = must(trainer.train(late, io));
    CHECK(must(trainer.train(plain, io)).end == must(fresh.train(plain, io)).end);
    CHECK(must(trainer.train(late, io)).end == first.end);
    io.stop_after = io.losses.size() + 2;  // called off with batches put away
    CHECK_FALSE(trainer.train(late, io));
    io.stop_after = UINT64_MAX;
    CHECK(must(trainer.train(plain, io)).end == must(fresh.train(plain, io)).end);
    CHECK(must(trainer.train(late, io)).end == first.end);
}

}  // namespace causeway
