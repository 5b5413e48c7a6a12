// Other orders of a batch's work: microbatches, recomputed blocks, deadlines. What they may change, and what never.
#include "model/footprint.h"
#include "model/memory_plan.h"
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

/// Everything whose bits recomputation could spoil: dropout's draws, batch norm's statistics, layers in place.
const std::vector<std::string> hard = {
    "conv 4 3x3", "batchnorm", "relu", "dropout 0.3", "maxpool 2", "residual 6 stride 2", "residual 6", "dropout 0.2",
    "flatten",    "dense 8",   "relu", "dropout 0.5", "dense 3"};
const Shape program_image{8, 8, 1};

/// The plain program with blocks of so many layers recomputed.
Program recomputed_program(const Chain& chain, std::uint32_t layers) {
    const auto end = static_cast<std::uint32_t>(chain.layer_count());
    const auto blocks = recompute_blocks(chain, layers);
    const LayerInterval rest{blocks.empty() ? 0 : blocks.back().end, end};
    Program program = plain_program(chain);
    auto& batch = program.instructions[0].body[0].body;
    batch = {{.code = OpCode::load}};
    for (const LayerInterval& block : blocks) {
        batch.push_back(make_forward(block));
    }
    batch.insert(batch.end(), {make_forward(rest), {.code = OpCode::loss}, make_backward(rest)});
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
        batch.insert(batch.end(), {make_recompute(*block), make_backward(*block)});
    }
    batch.push_back(make_step({0, end}));
    return program;
}

/// All of a batch but its step, in microbatches.
Program in_microbatches(Program program) {
    auto& batch = program.instructions[0].body[0].body;
    const Instruction step = batch.back();
    batch.pop_back();
    batch = {make_repeat(RepeatOver::microbatches, batch), step};
    return program;
}

TrainJob hard_job(const Chain& chain) {
    TrainJob job = make_job(chain, 41, "sgd learning_rate=0.05 momentum=0.9");
    job.optimizer.rule.clip_norm = 0.5;
    job.batch = 6;
    job.local_epochs = 2;
    job.draws = {.seed = 3, .round = 4, .node = 5};
    return job;
}

bool same_model(const ModelState& a, const ModelState& b) {
    return same_bits(a.trainable.values, b.trainable.values) && same_bits(a.buffers.values, b.buffers.values);
}

}  // namespace

TEST_CASE("recomputed blocks of any size give the bits of a run that keeps everything", "[property][program]") {
    const std::string backend = GENERATE("reference", "cpu");
    const std::uint32_t layers = GENERATE(1u, 2u, 3u, 5u, 40u);
    CAPTURE(backend, layers);
    const Chain chain = make_chain(hard, program_image);
    MemoryIo io = clusters(20, 64, 3, 41);
    TrainJob job = hard_job(chain);
    Trainer trainer = open_trainer(backend);
    const TrainResult kept = must(trainer.train(job, io));
    job.program = recomputed_program(chain, layers);
    REQUIRE((layers > 13 || count_instructions(job.program, OpCode::recompute) > 0));
    const TrainResult again = must(trainer.train(job, io));
    REQUIRE(same_model(kept.end, again.end));
    REQUIRE(same_bits(kept.optimizer_state.moments[0], again.optimizer_state.moments[0]));
    REQUIRE(kept.loss == again.loss);

    job.program = in_microbatches(plain_program(chain));
    job.microbatch = 4;
    const TrainResult parts = must(trainer.train(job, io));
    job.program = in_microbatches(recomputed_program(chain, layers));
    REQUIRE(same_model(parts.end, must(trainer.train(job, io)).end));
}

TEST_CASE("a microbatch of a whole batch is the batch, and cuts do not change smaller ones", "[property][program]") {
    const std::string backend = GENERATE("reference", "cpu");
    const Chain chain = make_chain(hard, program_image);
    MemoryIo io = clusters(20, 64, 3, 42);
    TrainJob job = hard_job(chain);
    Trainer trainer = open_trainer(backend);
    const TrainResult whole = must(trainer.train(job, io));
    job.program = in_microbatches(job.program);
    job.microbatch = 6;
    REQUIRE(same_model(whole.end, must(trainer.train(job, io)).end));
    job.microbatch = 4;  // 4 and 2
    const TrainResult parts = must(trainer.train(job, io));
    REQUIRE(parts.steps == whole.steps);
    REQUIRE_FALSE(same_model(whole.end, parts.end));  // sums in another order, and batch norm's own statistics
    for (const std::uint32_t cut : {1u, 4u, 6u, 12u}) {
        Program program = cut_program(chain, cut);
        auto& batch = program.instructions[0].body[0].body;
        batch = {make_repeat(RepeatOver::microbatches, {batch.begin(), batch.end() - 2}),
                 make_step({0, static_cast<std::uint32_t>(chain.layer_count())})};
        job.program = program;
        REQUIRE(same_model(parts.end, must(trainer.train(job, io)).end));
    }
}

TEST_CASE("a microbatch and recomputation take less memory, by the plan that the trainer allocates by",
          "[unit][footprint]") {
    const Chain chain = make_chain({"resnet-18 10"}, {32, 32, 3});
    const auto sgd = must(parse_optimizer("sgd"));
    const auto bytes = [&](std::int64_t rows, std::uint32_t layers) {
        return must(footprint_of(chain, sgd, rows, recompute_blocks(chain, layers))).activation_bytes;
    };
    REQUIRE(bytes(64, 1) * 3 < bytes(64, 0) * 2);
    REQUIRE(bytes(16, 0) * 4 == Approx(static_cast<double>(bytes(64, 0))).epsilon(0.01));
    const MemoryPlan plan = MemoryPlan::make(chain, recompute_blocks(chain, 1));
    REQUIRE(plan.scratches < chain.layer_count());
    REQUIRE(plan.storage == MemoryPlan::make(chain, {}).storage);  // no block of it begins in place
}

TEST_CASE("a block's first layer does not overwrite what its recomputation reads", "[unit][program]") {
    const Chain chain = make_chain({"dense 8", "relu", "dense 8", "relu", "dense 3"}, {6});
    MemoryIo io = clusters(12, 6, 3, 43);
    TrainJob job = make_job(chain, 43, "sgd learning_rate=0.1");
    job.batch = 4;
    Trainer trainer = open_trainer("cpu");
    const TrainResult kept = must(trainer.train(job, io));
    auto& batch = job.program.instructions[0].body[0].body;
    // relu would run in place on the dense layer's output, which the block [1, 4) begins with.
    batch = {{.code = OpCode::load}, make_forward({0, 5}),  {.code = OpCode::loss}, make_backward({4, 5}),
             make_recompute({1, 4}), make_backward({1, 4}), make_backward({0, 1}),  make_step({0, 5})};
    REQUIRE(same_model(kept.end, must(trainer.train(job, io)).end));
}

TEST_CASE("a program that uses what a recomputed block gave up is refused", "[unit][program]") {
    const Chain chain = make_chain({"dense 8", "relu", "dense 8", "relu", "dense 3"}, {6});
    const auto code_of = [&](const std::string& batch) -> std::string {
        const auto program = parse_program("repeat epochs { repeat batches { " + batch + " step [0, 5) } }");
        REQUIRE(program);
        const Status checked = check_runnable(*program, chain);
        return checked ? "ok" : checked.error().code;
    };
    REQUIRE(code_of("load forward [0, 5) loss backward [4, 5) recompute [2, 4) backward [2, 4) recompute [0, 2) "
                    "backward [0, 2)") == "ok");
    REQUIRE(code_of("load forward [0, 5) loss backward [4, 5) recompute [2, 4) backward [2, 4) backward [0, 2) "
                    "load forward [0, 5) recompute [0, 2) loss backward [0, 5)") == "program_order");
    REQUIRE(code_of("load forward [0, 5) loss backward [4, 5) recompute [2, 4) recompute [0, 2) backward [2, 4) "
                    "backward [0, 2)") == "program_order");
    REQUIRE(code_of("load recompute [0, 2) forward [0, 5) loss backward [0, 5)") == "program_order");
    REQUIRE(code_of("load forward [0, 5) loss recompute [0, 3) recompute [2, 5) backward [0, 5)") == "program_bounds");
    REQUIRE(code_of("load forward [0, 5) loss recompute [4, 6) backward [0, 5)") == "program_bounds");
}

TEST_CASE("a step that takes longer than its deadline ends the run, and says where", "[unit][program]") {
    const Chain chain = make_chain({"dense 3"}, {5});
    MemoryIo io = clusters(12, 5, 3, 44);
    TrainJob job = make_job(chain, 44, "sgd");
    job.batch = 4;
    auto& batch = job.program.instructions[0].body[0].body;
    batch.insert(batch.begin(), Instruction{.code = OpCode::deadline, .index = 100});
    Duration now{};
    Duration tick = std::chrono::milliseconds(1);
    job.clock = [&] {
        now += io.losses.size() == 2 ? std::chrono::milliseconds(30) : tick;
        return now;
    };
    Trainer trainer = open_trainer("cpu");
    const auto late = trainer.train(job, io);
    REQUIRE_FALSE(late);
    REQUIRE(late.error().code == "step_deadline");
    REQUIRE(late.error().kind == ErrorKind::timed_out);
    REQUIRE_THAT(late.error().message, Catch::Contains("batch 2"));
    io.losses.clear();
    job.clock = [&] { return now += tick; };
    const TrainResult in_time = must(trainer.train(job, io));
    job.clock = {};  // without a clock nothing is late
    REQUIRE(same_model(in_time.end, must(trainer.train(job, io)).end));
}

TEST_CASE("deadline, recompute and both forms of snapshot are read as they are written", "[unit][program]") {
    const std::string text =
        "repeat batches {\n    deadline 1500\n    load\n    recompute [0, 2)\n    snapshot\n    snapshot 3 trainable "
        "[0, 4)\n}\n";
    const auto program = parse_program(text);
    REQUIRE(program);
    REQUIRE(to_text(*program) == text);
    REQUIRE(program->instructions[0].body[3].keeps_run());
    REQUIRE_FALSE(program->instructions[0].body[4].keeps_run());
    REQUIRE(parse_program("deadline 0").error().code == "program_syntax");
    REQUIRE(parse_program("deadline").error().code == "program_syntax");
}

}  // namespace causeway
