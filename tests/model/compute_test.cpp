// bf16 compute, Winograd's convolutions, and weights that are packed when they are used again: what changes, and what
// does not.
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

const std::vector<std::string> network = {"conv 6 3x3", "relu", "maxpool 2", "flatten", "dense 24", "relu", "dense 4"};
const Shape compute_image{6, 6, 2};

MemoryIo images() {
    return clusters(44, 72, 4, 5);
}

bool has_bf16(const std::string& backend) {
    return must(Device::open(backend)).check(Compute::bf16).has_value();
}

TrainJob job_with(const std::string& optimizer) {
    TrainJob job = make_job(make_chain(network, compute_image), 3, optimizer);
    job.batch = 16;
    job.local_epochs = 3;
    return job;
}

TrainResult train_computing(const std::string& backend, const TrainJob& job) {
    Trainer trainer = open_trainer(backend);
    MemoryIo io = images();
    return must(trainer.train(job, io));
}

/// The same in four parts a batch: weights are used four times before they change.
TrainJob in_parts(TrainJob job) {
    auto& batch = job.program.instructions[0].body[0].body;
    const Instruction step = batch.back();
    batch.pop_back();
    batch = {make_repeat(RepeatOver::microbatches, std::move(batch)), step};
    job.microbatch = (job.batch + 3) / 4;
    return job;
}

}  // namespace

TEST_CASE("training in bf16 does what the reference's emulation does, and not what f32 does", "[kernels][compute]") {
    if (!has_bf16("cpu")) {
        WARN("this processor has no bf16: only the reference can compute in it");
        return;
    }
    const auto f32 = train_computing("cpu", job_with("sgd learning_rate=0.05 momentum=0.9")).end.trainable.values;
    const auto job = job_with("sgd learning_rate=0.05 momentum=0.9 compute=bf16");
    const auto cpu = train_computing("cpu", job).end.trainable.values;
    const auto reference = train_computing("reference", job).end.trainable.values;
    double apart = 0;
    for (std::size_t i = 0; i < cpu.size(); ++i) {
        // A value beside a tie of the rounding may fall to either side: half a unit of bf16, 2^-9 of a factor.
        REQUIRE(cpu[i] == Approx(reference[i]).margin(4e-3));
        apart = std::max(apart, std::abs(double{cpu[i]} - double{f32[i]}));
    }
    REQUIRE(apart > 1e-4);
}

TEST_CASE("in bf16 too a chain cut anywhere gives the bits of the whole one", "[property][compute]") {
    const std::string backend = GENERATE("reference", "cpu");
    if (!has_bf16(backend)) {
        return;
    }
    TrainJob job = job_with("sgd learning_rate=0.05 momentum=0.9 compute=bf16");
    const TrainResult whole = train_computing(backend, job);
    for (std::uint32_t cut = 1; cut < job.chain.layer_count(); ++cut) {
        CAPTURE(backend, cut);
        job.program = cut_program(job.chain, cut);
        REQUIRE(same_bits(train_computing(backend, job).end.trainable.values, whole.end.trainable.values));
    }
}

TEST_CASE("training by Winograd's convolutions comes to f32's values but for roundings, and to the same each time",
          "[kernels][compute]") {
    const Chain chain =
        make_chain({"conv 32 3x3", "relu", "conv 32 3x3", "maxpool 2", "flatten", "dense 4"}, compute_image);
    const auto trained = [&](const std::string& compute) {
        TrainJob job = make_job(chain, 3, "sgd learning_rate=0.02 compute=" + compute);
        job.batch = 16;
        MemoryIo io = images();
        Trainer trainer = open_trainer("cpu");
        return must(trainer.train(job, io)).end.trainable.values;
    };
    const auto plain = trained("f32"), winograd = trained("winograd");
    const bool has_it = must(Device::open("cpu")).signature().find("avx512") != std::string::npos;
    REQUIRE(same_bits(plain, winograd) != has_it);
    REQUIRE(same_bits(winograd, trained("winograd")));
    for (std::size_t i = 0; i < plain.size(); ++i) {
        REQUIRE(winograd[i] == Approx(plain[i]).margin(1e-5));
    }
}

TEST_CASE("weights that were packed are packed anew after a step", "[property][compute]") {
    const TrainJob job = in_parts(job_with("sgd learning_rate=0.1 momentum=0.9"));
    const auto cpu = train_computing("cpu", job).end.trainable.values;
    const auto reference = train_computing("reference", job).end.trainable.values;  // packs nothing
    for (std::size_t i = 0; i < cpu.size(); ++i) {
        REQUIRE(cpu[i] == Approx(reference[i]).margin(2e-4));
    }
}

TEST_CASE("packed weights give the scores of plain ones, bit for bit", "[property][compute]") {
    const Chain chain = make_chain(network, compute_image);
    const ModelState state = initial_model(chain, 3);
    const MemoryIo all = images();
    constexpr std::size_t batch = 11, classes = 4;
    std::vector<float> together;
    const auto append = [&](std::vector<float>& to) {
        return [&to](const BatchPlace&, std::span<const float> scores, std::span<const std::int64_t>) -> Status {
            to.insert(to.end(), scores.begin(), scores.end());
            return {};
        };
    };
    MemoryIo io = all;
    Trainer trainer = open_trainer("cpu");
    must(trainer.predict(chain, state, io, append(together), batch));  // from the second batch on they are packed
    for (std::size_t first = 0; first < all.labels.size(); first += batch) {
        MemoryIo part = all;
        part.features.assign(all.features.begin() + static_cast<std::ptrdiff_t>(first * all.width),
                             all.features.begin() + static_cast<std::ptrdiff_t>((first + batch) * all.width));
        part.labels.assign(batch, 0);
        std::vector<float> alone;
        Trainer fresh = open_trainer("cpu");
        must(fresh.predict(chain, state, part, append(alone), batch));
        const auto begin = together.begin() + static_cast<std::ptrdiff_t>(first * classes);
        REQUIRE(same_bits(alone, std::vector<float>(begin, begin + batch * classes)));
    }
}

TEST_CASE("an optimizer's text says in what it computes, and only when it is not f32", "[unit][compute]") {
    for (const Compute compute : {Compute::bf16, Compute::winograd}) {
        const auto spec = must(parse_optimizer("sgd learning_rate=0.1 compute=" + std::string(to_string(compute))));
        REQUIRE(spec.rule.compute == compute);
        REQUIRE(must(parse_optimizer(to_text(spec))) == spec);
    }
    REQUIRE(to_text(must(parse_optimizer("sgd compute=f32"))).find("compute") == std::string::npos);
    const auto wrong = parse_optimizer("sgd compute=f16");
    REQUIRE(wrong.error().code == "bad_optimizer");
    REQUIRE(wrong.error().message.find("compute is f32, bf16 or winograd, not \"f16\"") != std::string::npos);
}

}  // namespace causeway
