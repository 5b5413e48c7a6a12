// Every preset, cut at every place, with everything that looks past a layer: dropout, clipping, momentum, microbatches.
#include "model/presets.h"
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

/// Two optimizer steps are enough for a difference to reach the parameters.
TrainJob preset_job_of(const Chain& chain) {
    TrainJob job = make_job(chain, 61, "sgd learning_rate=0.05 momentum=0.9");
    job.optimizer.rule.clip_norm = 0.05;  // below the gradient's norm: it acts
    job.batch = 3;
    job.microbatch = 2;
    job.draws = {.seed = 3, .round = 4, .node = 5};
    return job;
}

/// Forward and backward cut at a layer (0: whole), in microbatches.
Program program_of(const Chain& chain, std::uint32_t cut) {
    const auto end = static_cast<std::uint32_t>(chain.layer_count());
    Program program = cut == 0 ? plain_program(chain) : cut_program(chain, cut);
    auto& batch = program.instructions[0].body[0].body;
    std::erase_if(batch, [](const Instruction& instruction) { return instruction.code == OpCode::step; });
    batch = {make_repeat(RepeatOver::microbatches, batch), make_step({0, end})};
    return program;
}

}  // namespace

TEST_CASE("every preset cut at every place gives the bits of the whole one, dropout and clipping on",
          "[property][presets]") {
    const Compute compute = GENERATE(Compute::f32, Compute::winograd);
    for (const ModelPreset& preset : model_presets()) {
        if (compute == Compute::winograd && preset.name != "resnet-18") {
            continue;  // no other has convolutions that are computed differently
        }
        CAPTURE(preset.name, to_string(compute));
        const Chain chain =
            make_chain({"dropout 0.1", std::string(preset.name) + " 3", "dropout 0.2", "dense 3"}, {8, 8, 3});
        MemoryIo io = clusters(6, 192, 3, 61);
        TrainJob job = preset_job_of(chain);
        job.optimizer.rule.compute = compute;
        Trainer trainer = open_trainer("cpu");
        job.program = program_of(chain, 0);
        const TrainResult whole = must(trainer.train(job, io));
        TrainJob free = job;
        free.optimizer.rule.clip_norm = 0;
        REQUIRE_FALSE(same_bits(must(trainer.train(free, io)).end.trainable.values, whole.end.trainable.values));
        for (std::uint32_t cut = 1; cut < chain.layer_count(); ++cut) {
            CAPTURE(cut);
            job.program = program_of(chain, cut);
            const TrainResult parts = must(trainer.train(job, io));
            REQUIRE(same_bits(parts.end.trainable.values, whole.end.trainable.values));
            REQUIRE(same_bits(parts.end.buffers.values, whole.end.buffers.values));
        }
    }
}

}  // namespace causeway
