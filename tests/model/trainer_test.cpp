// The trainer: it does what its program says, bit for bit, whatever the cut, and asks for exactly its batches.
#include <cmath>

#include "tests/model/fixtures.h"

namespace causeway {
namespace {

const std::vector<std::string> trainer_mlp = {"flatten", "dense 24", "relu", "dense 16", "gelu", "dense 4"};

/// One step of SGD over the whole set, straight on the kernels: the oracle for bits.
std::vector<float> sgd_by_hand(const std::string& backend, std::vector<float> theta, const MemoryIo& io,
                               std::int64_t hidden, std::int64_t classes, double rate) {
    PlanCache plans(must(Device::open(backend)));
    const auto rows = static_cast<std::int64_t>(io.labels.size());
    const auto inputs = static_cast<std::int64_t>(io.width);
    const ops::MatmulShape first{rows, inputs, hidden}, second{rows, hidden, classes};
    const std::size_t w1 = 0, b1 = static_cast<std::size_t>(inputs * hidden),
                      w2 = b1 + static_cast<std::size_t>(hidden), b2 = w2 + static_cast<std::size_t>(hidden * classes);
    const auto part = [](std::vector<float>& all, std::size_t begin, std::size_t end) {
        return Operand(std::span<float>(all).subspan(begin, end - begin));
    };
    const auto run = [&](const cw_op& op, std::initializer_list<Operand> operands,
                         std::initializer_list<double> scalars) { must(must(plans.get(op))->run(operands, scalars)); };
    std::vector<float> h(static_cast<std::size_t>(rows * hidden)), a(h.size()), da(h.size()), dh(h.size());
    std::vector<float> scores(static_cast<std::size_t>(rows * classes)), dscores(scores.size()), g(theta.size());
    double loss = 0;
    std::int64_t correct = 0;
    run(ops::matmul(first), {io.features, part(theta, w1, b1), part(theta, b1, w2), h}, {});
    run(ops::relu(), {h, a}, {});
    run(ops::matmul(second), {a, part(theta, w2, b2), part(theta, b2, theta.size()), scores}, {});
    run(ops::softmax_cross_entropy(rows, classes), {scores, io.labels, loss, correct, dscores},
        {static_cast<double>(rows)});
    run(ops::matmul_backward_weights(second), {dscores, a, part(g, w2, b2), part(g, b2, g.size())}, {});
    run(ops::matmul_backward_data(second), {dscores, part(theta, w2, b2), da}, {});
    run(ops::relu_backward(), {h, da, dh}, {});
    run(ops::matmul_backward_weights(first), {dh, io.features, part(g, w1, b1), part(g, b1, w2)}, {});
    run(ops::sgd(ops::Momentum::absent), {theta, g}, {rate, 0, 0, 0, 1});
    return theta;
}

TrainResult train_program(const std::string& backend, const TrainJob& job, MemoryIo io, int threads = 1) {
    Trainer trainer = open_trainer(backend, threads);
    return must(trainer.train(job, io));
}

}  // namespace

TEST_CASE("one epoch of the full batch is one step of plain SGD, bit for bit", "[paper][trainer]") {
    const std::string backend = GENERATE("reference", "cpu");
    CAPTURE(backend);
    const Chain chain = make_chain({"dense 12", "relu", "dense 3"}, {6});
    const MemoryIo io = clusters(50, 6, 3, 4);
    const TrainJob job = make_job(chain, 4, "sgd learning_rate=0.1");
    const auto expected = sgd_by_hand(backend, job.start.trainable.values, io, 12, 3, 0.1);
    REQUIRE(same_bits(train_program(backend, job, io).end.trainable.values, expected));
}

TEST_CASE("the cpu backend agrees with the reference over many steps", "[kernels][trainer]") {
    const std::string optimizer = GENERATE("sgd learning_rate=0.05 momentum=0.9", "adamw learning_rate=0.003");
    const Chain chain = make_chain(trainer_mlp, {3, 4});
    const MemoryIo io = clusters(70, 12, 4, 6);
    TrainJob job = make_job(chain, 6, optimizer);
    job.batch = 16;
    job.local_epochs = 3;
    const auto a = train_program("reference", job, io).end.trainable.values;
    const auto b = train_program("cpu", job, io).end.trainable.values;
    for (std::size_t i = 0; i < a.size(); ++i) {
        REQUIRE(b[i] == Approx(a[i]).margin(2e-4));
    }
}

TEST_CASE("a chain cut anywhere gives the bits of the whole one", "[property][trainer]") {
    const std::string backend = GENERATE("reference", "cpu");
    const Chain chain = make_chain(trainer_mlp, {3, 4});
    const MemoryIo io = clusters(37, 12, 4, 8);
    TrainJob job = make_job(chain, 8, "sgd learning_rate=0.05 momentum=0.9");
    job.batch = 8;
    job.local_epochs = 2;
    const TrainResult whole = train_program(backend, job, io);
    for (std::uint32_t cut = 1; cut < chain.layer_count(); ++cut) {
        CAPTURE(backend, cut);
        job.program = cut_program(chain, cut);
        const TrainResult cut_result = train_program(backend, job, io);
        REQUIRE(same_bits(cut_result.end.trainable.values, whole.end.trainable.values));
        REQUIRE(cut_result.optimizer_state == whole.optimizer_state);
        REQUIRE(cut_result.loss == whole.loss);
    }
}

TEST_CASE("steps on disjoint range sets together are the step on all layers, bit for bit", "[unit][trainer]") {
    const Chain chain = make_chain(trainer_mlp, {3, 4});
    const MemoryIo io = clusters(37, 12, 4, 8);
    TrainJob job = make_job(chain, 8, "adamw learning_rate=0.01");
    job.batch = 8;
    const TrainResult whole = train_program("cpu", job, io);
    auto& batch = job.program.instructions[0].body[0].body;
    const auto set_ranges = [&](std::vector<Range> ranges) {
        batch.back().layers = {};
        batch.back().ranges = must(RangeSet::make(std::move(ranges), chain.parameter_count()));
    };
    set_ranges({{0, 100}, {200, chain.parameter_count()}});
    const TrainResult part = train_program("cpu", job, io);
    const auto& start = job.start.trainable.values;
    REQUIRE(std::equal(start.begin() + 100, start.begin() + 200, part.end.trainable.values.begin() + 100));
    REQUIRE_FALSE(std::equal(start.begin(), start.begin() + 100, part.end.trainable.values.begin()));
    batch.push_back(batch.back());
    set_ranges({{100, 200}});
    const TrainResult both = train_program("cpu", job, io);
    REQUIRE(same_bits(both.end.trainable.values, whole.end.trainable.values));
    REQUIRE(both.optimizer_state == whole.optimizer_state);
}

TEST_CASE("layers that have taken different numbers of steps keep their own", "[unit][trainer]") {
    const Chain chain = make_chain(trainer_mlp, {3, 4});
    const MemoryIo io = clusters(37, 12, 4, 8);
    TrainJob job = make_job(chain, 8, "adamw learning_rate=0.01");
    job.batch = 8;
    auto& batch = job.program.instructions[0].body[0].body;
    batch.back() = make_step({3, 6});
    const TrainResult upper = train_program("cpu", job, io);
    REQUIRE(upper.optimizer_state.steps == std::vector<std::uint64_t>{0, 0, 0, 5, 0, 5});
    job.start = upper.end;
    job.optimizer_state = upper.optimizer_state;
    batch.back() = make_step({0, 6});
    const TrainResult together = train_program("cpu", job, io);
    REQUIRE(together.optimizer_state.steps == std::vector<std::uint64_t>{0, 5, 0, 10, 0, 10});
    batch.back() = make_step({0, 2});
    batch.push_back(make_step({2, 6}));
    REQUIRE(same_bits(train_program("cpu", job, io).end.trainable.values, together.end.trainable.values));
}

TEST_CASE("training in two halves with the state kept is training in one go", "[unit][trainer]") {
    const std::string optimizer = GENERATE("sgd learning_rate=0.05 momentum=0.9 nesterov=1", "adamw", "sgd");
    const Chain chain = make_chain(trainer_mlp, {3, 4});
    MemoryIo io = clusters(30, 12, 4, 2);
    TrainJob job = make_job(chain, 2, optimizer);
    job.batch = 7;
    job.local_epochs = 4;
    const TrainResult whole = train_program("cpu", job, io);
    job.local_epochs = 2;
    Trainer trainer = open_trainer("cpu");
    const TrainResult half = must(trainer.train(job, io));
    job.start = half.end;
    job.optimizer_state = half.optimizer_state;
    const TrainResult rest = must(trainer.train(job, io));
    REQUIRE(same_bits(rest.end.trainable.values, whole.end.trainable.values));
    REQUIRE(rest.optimizer_state == whole.optimizer_state);
    REQUIRE(rest.end.trainable.version > half.end.trainable.version);
}

TEST_CASE("a trainer that did other work before gives the same bits", "[property][trainer]") {
    const Chain chain = make_chain(trainer_mlp, {3, 4});
    MemoryIo io = clusters(45, 12, 4, 3);
    TrainJob job = make_job(chain, 3, "sgd learning_rate=0.05 momentum=0.9");
    job.batch = 10;
    const TrainResult fresh = train_program("cpu", job, io);
    Trainer trainer = open_trainer("cpu");
    MemoryIo other = clusters(200, 5, 3, 1);
    must(trainer.train(make_job(make_chain({"dense 3"}, {5}), 1, "adamw"), other));
    MemoryIo more = clusters(80, 12, 4, 9);
    must(trainer.train(make_job(chain, 5, "sgd"), more));
    must(trainer.evaluate(chain, job.start, more));
    REQUIRE(same_bits(must(trainer.train(job, io)).end.trainable.values, fresh.end.trainable.values));
    REQUIRE(same_bits(must(trainer.train(job, io)).end.trainable.values, fresh.end.trainable.values));
}

TEST_CASE("microbatches add up to their batch", "[unit][trainer]") {
    const Chain chain = make_chain(trainer_mlp, {3, 4});
    const MemoryIo io = clusters(31, 12, 4, 7);
    TrainJob job = make_job(chain, 7, "sgd learning_rate=0.1 momentum=0.5");
    job.batch = 10;
    job.local_epochs = 2;
    const TrainResult whole = train_program("cpu", job, io);
    const TrainJob whole_job = job;
    auto& batch = job.program.instructions[0].body[0].body;
    const Instruction step = batch.back();
    batch.pop_back();
    batch = {make_repeat(RepeatOver::microbatches, batch), step};
    job.microbatch = 4;
    MemoryIo seen = io, seen_whole = io;
    Trainer trainer = open_trainer("cpu");
    const TrainResult parts = must(trainer.train(job, seen));
    must(trainer.train(whole_job, seen_whole));
    REQUIRE(seen.asked.size() == 2 * (3 + 3 + 3 + 1));  // the last batch has one row: one part
    for (std::size_t i = 0; i < seen.losses.size(); ++i) {
        REQUIRE(seen.losses[i] == Approx(seen_whole.losses.at(i)).epsilon(1e-5));
    }
    REQUIRE(parts.steps == whole.steps);
    REQUIRE(parts.examples == whole.examples);
    REQUIRE(parts.loss == Approx(whole.loss).epsilon(1e-6));
    for (std::size_t i = 0; i < whole.end.trainable.values.size(); ++i) {
        REQUIRE(parts.end.trainable.values[i] == Approx(whole.end.trainable.values[i]).margin(1e-5));
    }
}

TEST_CASE("short last batches are kept, and each epoch asks for all of them in order", "[unit][trainer]") {
    const Chain chain = make_chain({"dense 3"}, {5});
    MemoryIo io = clusters(23, 5, 3, 1);
    TrainJob job = make_job(chain, 1, "sgd");
    job.batch = 10;
    job.local_epochs = 2;
    Trainer trainer = open_trainer("cpu");
    const TrainResult result = must(trainer.train(job, io));
    REQUIRE(io.asked.size() == 6);
    REQUIRE(io.asked[2].first == 20);
    REQUIRE(io.asked[2].rows == 3);
    REQUIRE(io.asked[5].epoch == 1);
    REQUIRE(io.asked[5].batch == 2);
    REQUIRE(result.steps == 6);
    REQUIRE(result.examples == 46);
    const double last_epoch = (10 * io.losses[3] + 10 * io.losses[4] + 3 * io.losses[5]) / 23;
    REQUIRE(result.loss == Approx(last_epoch).epsilon(1e-12));
}

TEST_CASE("a batch above the set's size and a batch of 0 are the whole set", "[unit][trainer]") {
    const Chain chain = make_chain({"dense 3"}, {5});
    const MemoryIo io = clusters(23, 5, 3, 1);
    TrainJob job = make_job(chain, 1, "sgd");
    const auto full = train_program("cpu", job, io);
    job.batch = 1000;
    REQUIRE(same_bits(train_program("cpu", job, io).end.trainable.values, full.end.trainable.values));
    REQUIRE(full.steps == 1);
}

TEST_CASE("training learns, and evaluation sees it", "[unit][trainer]") {
    const std::string optimizer = GENERATE("sgd learning_rate=0.1 momentum=0.9", "adamw learning_rate=0.01");
    const Chain chain = make_chain(trainer_mlp, {3, 4});
    MemoryIo io = clusters(300, 12, 4, 13);
    TrainJob job = make_job(chain, 13, optimizer);
    job.batch = 32;
    job.local_epochs = 10;
    Trainer trainer = open_trainer("cpu");
    const Evaluation before = must(trainer.evaluate(chain, job.start, io));
    const Evaluation after = must(trainer.evaluate(chain, must(trainer.train(job, io)).end, io));
    REQUIRE(before.loss > 1.0);
    REQUIRE(after.loss < 0.1);
    REQUIRE(after.accuracy > 0.98);
    REQUIRE(after.examples == 300);
}

TEST_CASE("an evaluation's accuracy does not depend on its batches", "[unit][trainer]") {
    const Chain chain = make_chain(trainer_mlp, {3, 4});
    MemoryIo io = clusters(101, 12, 4, 17);
    const ModelState state = initial_model(chain, 17);
    Trainer trainer = open_trainer("cpu");
    const Evaluation whole = must(trainer.evaluate(chain, state, io, 0));
    for (const std::uint32_t batch : {1u, 7u, 50u, 101u, 5000u}) {
        const Evaluation part = must(trainer.evaluate(chain, state, io, batch));
        REQUIRE(part.accuracy == whole.accuracy);
        REQUIRE(part.loss == Approx(whole.loss).epsilon(1e-6));
    }
}

TEST_CASE("without examples the model stays as it is", "[unit][trainer]") {
    const Chain chain = make_chain({"dense 3"}, {5});
    const TrainJob job = make_job(chain, 1, "sgd momentum=0.9");
    MemoryIo io;
    Trainer trainer = open_trainer("cpu");
    const TrainResult result = must(trainer.train(job, io));
    REQUIRE(result.end == job.start);
    REQUIRE(result.examples == 0);
    REQUIRE(trainer.evaluate(chain, job.start, io).error().code == "no_examples");
}

TEST_CASE("a caller can stop between batches", "[unit][trainer]") {
    const Chain chain = make_chain({"dense 3"}, {5});
    MemoryIo io = clusters(30, 5, 3, 1);
    io.stop_after = 2;
    TrainJob job = make_job(chain, 1, "sgd");
    job.batch = 5;
    Trainer trainer = open_trainer("cpu");
    REQUIRE(trainer.train(job, io).error().code == "stopped");
    REQUIRE(io.asked.size() == 2);
}

TEST_CASE("wrong jobs are refused with their reason, and the trainer goes on", "[unit][trainer]") {
    const Chain chain = make_chain({"dense 3"}, {5});
    MemoryIo io = clusters(30, 5, 3, 1);
    Trainer trainer = open_trainer("cpu");
    const TrainJob good = make_job(chain, 1, "sgd momentum=0.9");
    const auto code = [&](const TrainJob& job) { return trainer.train(job, io).error().code; };

    TrainJob job = good;
    job.start.trainable.values.pop_back();
    REQUIRE(code(job) == "model_mismatch");
    job = good;
    job.local_epochs = 0;
    REQUIRE(code(job) == "bad_job");
    job = good;
    job.optimizer_state = OptimizerState{};
    REQUIRE(code(job) == "optimizer_mismatch");
    job = good;
    job.program = must(parse_program("repeat batches { load loss }"));
    REQUIRE(code(job) == "program_order");
    job = good;
    job.program = must(parse_program("stash"));
    REQUIRE(code(job) == "program_unsupported");
    struct NoHook : GradientHook {
        Status gradient_final(const LayerGradient&) override { return {}; }
    } hook;
    job = good;
    job.hook = &hook;
    REQUIRE(code(job) == "bad_job");
    const auto kept = io.labels[3];
    for (const std::int64_t label : {std::int64_t{-1}, std::int64_t{3}, INT64_MAX}) {
        io.labels[3] = label;
        REQUIRE(code(good) == "label_out_of_range");
    }
    io.labels[3] = kept;
    REQUIRE(trainer.train(good, io));
}

TEST_CASE("times are taken by the caller's clock, by kind of instruction", "[unit][trainer]") {
    const Chain chain = make_chain({"dense 3"}, {5});
    MemoryIo io = clusters(30, 5, 3, 1);
    TrainJob job = make_job(chain, 1, "sgd");
    job.batch = 10;
    Duration now{0};
    job.clock = [&] { return now += std::chrono::seconds(1); };  // a second passes between two looks at it
    Trainer trainer = open_trainer("cpu");
    const TrainResult result = must(trainer.train(job, io));
    for (const OpCode code : {OpCode::load, OpCode::forward, OpCode::loss, OpCode::backward, OpCode::step}) {
        REQUIRE(result.seconds[static_cast<std::size_t>(code)] == 3.0);
    }
    REQUIRE(result.seconds[static_cast<std::size_t>(OpCode::sync)] == 0.0);
}

TEST_CASE("a layer before the first parameters gets no backward, and nothing breaks", "[unit][trainer]") {
    const Chain chain = make_chain({"relu", "flatten", "gelu", "dense 3", "flatten"}, {5});
    const MemoryIo io = clusters(20, 5, 3, 1);
    const TrainResult result = train_program("cpu", make_job(chain, 1, "sgd learning_rate=0.1"), io);
    REQUIRE(result.loss > 0);
    REQUIRE_FALSE(result.end.trainable.values == initial_model(chain, 1).trainable.values);
    const Chain bare = make_chain({"relu"}, {3});
    const TrainResult nothing = train_program("cpu", make_job(bare, 1, "sgd"), clusters(20, 3, 3, 1));
    REQUIRE(nothing.end.trainable.values.empty());
}

TEST_CASE("the initial model depends on the seed and the layer's place alone", "[unit][initialise]") {
    const Chain chain = make_chain({"flatten", "dense 64", "relu", "dense 10"}, {8, 8, 1});
    const ModelState a = initial_model(chain, 7);
    REQUIRE(initial_model(chain, 7) == a);
    REQUIRE_FALSE(initial_model(chain, 8) == a);
    const Chain narrower = make_chain({"flatten", "dense 64", "relu", "dense 5"}, {8, 8, 1});
    const ModelState b = initial_model(narrower, 7);
    REQUIRE(std::equal(b.trainable.values.begin(), b.trainable.values.begin() + 64 * 65, a.trainable.values.begin()));
    const TensorInfo& weight = *chain.table().find("dense1.weight");
    double sum = 0, largest = 0;
    for (const float value : a.trainable.view(weight)) {
        sum += static_cast<double>(value);
        largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    REQUIRE(largest <= 1.0 / 8);  // 1 / sqrt(64 inputs)
    REQUIRE(largest > 0.124);
    REQUIRE(std::abs(sum / (64 * 64)) < 0.004);
}

}  // namespace causeway
