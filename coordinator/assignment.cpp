// See assignment.h. The only file here that sees configs/workload.h, which brings in the folders of models and data.
#include "coordinator/assignment.h"

#include "configs/split_plan.h"
#include "configs/workload.h"

namespace causeway {

Result<Assign> assignment_of(const Experiment& experiment, const std::string& submitted_by) {
    TRY_ASSIGN(const auto chain, chain_of(experiment));
    TRY_ASSIGN(const auto plan, split_plan_of(experiment, chain));
    TRY_ASSIGN(auto texts, plan ? work_texts(experiment, *plan, 0) : work_texts(experiment));
    Assign assign;
    assign.experiment_name = experiment.experiment.name;
    assign.rounds = experiment.experiment.rounds;
    assign.seed = experiment.experiment.seed;
    assign.dataset = std::move(texts.dataset);
    assign.data_options = std::move(texts.data_options);
    assign.architecture = std::move(texts.architecture);
    assign.program = std::move(texts.program);
    assign.optimizer = std::move(texts.optimizer);
    assign.optimizer_state = std::move(texts.optimizer_state);
    assign.batch = texts.batch;
    assign.local_epochs = texts.local_epochs;
    assign.microbatch = texts.microbatch;
    assign.snapshot_every = std::move(texts.snapshot_every);
    assign.uplink = std::move(texts.uplink);
    assign.smash_noise = experiment.regime.smash_noise;
    assign.regime = experiment.regime.preset;
    assign.submitted_by = submitted_by;
    return assign;
}

}  // namespace causeway
