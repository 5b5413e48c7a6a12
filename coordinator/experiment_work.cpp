// Parsing once, then the calls into model/ and aggregation/.
#include "coordinator/experiment_work.h"

#include "configs/initial_model.h"
#include "configs/reader.h"
#include "configs/workload.h"
#include "coordinator/limits.h"
#include "model/checkpoint.h"
#include "model/initialise.h"

namespace causeway {

Result<ExperimentSetup> read_setup(const SaveExperiment& saved) {
    TRY_ASSIGN(auto experiment, read_experiment_or_fail(saved.file, saved.name));
    TRY_ASSIGN(auto chain, chain_of(experiment));
    // No round has more members than there can be sessions; the bound on values is far above any model's even so.
    const CohortFacts facts{.cohort = limits::sessions, .quorum = experiment.sync.quorum.of(limits::sessions)};
    TRY_ASSIGN(auto codec, parse_codec(experiment.codec.uplink));
    TRY_ASSIGN(auto aggregator, parse_aggregator(experiment.sync.aggregator, facts));
    RoundRules rules{.codec = std::move(codec), .aggregator = std::move(aggregator), .cohort = limits::sessions};
    TRY_ASSIGN(auto split, segment_rules_of(experiment, chain));
    return ExperimentSetup{std::move(experiment), std::move(chain), std::move(rules), std::move(split),
                           saved.file};
}

Result<Bytes> make_first_model(const ExperimentSetup& setup, const ReadNamedModel& read_named) {
    const auto from = init_from_of(setup.experiment);
    if (!from) {
        return to_safetensors(setup.chain, initial_model(setup.chain, setup.experiment.experiment.seed));
    }
    const auto file = read_named(from->name);
    if (!file) {
        return fail(ErrorKind::io, "model_unavailable",
                    "model \"" + from->name + "\" cannot be read (" + file.error().message +
                        "); start the coordinator with --model " + from->name + "=PATH");
    }
    return canonical_initial_model(setup.chain, *from, *file);
}

Result<std::shared_ptr<const RoundInput>> make_round_input(const ExperimentSetup& setup, const OpenRound& job,
                                                           ByteView model) {
    if (job.round == 0) {
        const auto& shape = setup.experiment.data.shape;
        const StatisticsRules statistics{
            .columns = static_cast<std::size_t>(shape.back()),
            .values = static_cast<std::uint64_t>(element_count(shape) / shape.back()),
            .members = job.members};
        return std::make_shared<const RoundInput>(setup.chain, setup.rules, statistics);
    }
    TRY_ASSIGN(auto start, from_safetensors(setup.chain, model));
    return std::make_shared<const RoundInput>(setup.chain, setup.rules, job.round, std::move(start), job.start_model);
}

ModelEvaluated evaluated(ExperimentId experiment, std::uint32_t round, const Figures& figures) {
    return {.experiment = experiment,
            .round = round,
            .loss = figures.value("loss"),
            .accuracy = figures.value("accuracy"),
            .examples = figures.examples,
            .detail = to_json(figures)};
}

Result<Figures> evaluate_model(Trainer& trainer, const ExperimentSetup& setup, ByteView model,
                               const Dataset& held_out) {
    TRY_ASSIGN(const auto state, from_safetensors(setup.chain, model));
    return evaluate_dataset(trainer, setup.chain, state, held_out);
}

}  // namespace causeway
