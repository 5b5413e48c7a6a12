// What an experiment means to the nodes that work on it: the values and texts that `assign` carries.
//
// Coordinator and simulator send these texts, clients read them back with the parsers of the folders that own them
// (data/data_options.h, model/chain.h, model/program.h, model/optimizer.h). Pure, any thread.
#pragma once

#include <string>

#include "configs/experiment.h"
#include "data/data_options.h"
#include "data/partition.h"
#include "model/chain.h"
#include "model/optimizer.h"
#include "model/program.h"
#include "split/flow.h"

namespace causeway {

[[nodiscard]] DataOptions data_options_of(const Experiment& experiment);
/// For demo, simulate and `data split`, where one process hands out the data.
[[nodiscard]] PartitionSpec partition_of(const Experiment& experiment);
/// The model as the file describes it, batch_norm's rule carried out; or all that is wrong with it.
[[nodiscard]] tl::expected<Chain, std::vector<LayerError>> parse_chain(const Experiment& experiment);
/// errors  invalid `bad_configuration`: only for an experiment that did not come from read_experiment
[[nodiscard]] Result<Chain> chain_of(const Experiment& experiment);

/// The clients' optimizer with the run's schedule and clipping.
///
/// errors  invalid `bad_optimizer`
[[nodiscard]] Result<OptimizerSpec> optimizer_of(const Experiment& experiment);

/// How the work of a batch is ordered: microbatches, recomputation, deadline, snapshots.
[[nodiscard]] BatchRule batch_rule_of(const Experiment& experiment);

/// One cell's work for a round, in texts.
struct WorkTexts {
    std::string dataset;
    std::string data_options;
    std::string architecture;
    std::string program;
    std::string optimizer;
    std::string optimizer_state;
    std::string uplink;
    std::uint32_t batch = 0;  // examples, 0: full
    std::uint32_t local_epochs = 1;
    std::uint32_t microbatch = 0;  // examples, 0: a batch's
    std::string snapshot_every;
};

/// Of a regime of one stage; split_plan.h has those of more.
///
/// errors  invalid: as chain_of, or a flow that does not fit the chain (`bad_flow`: one of several stages)
[[nodiscard]] Result<WorkTexts> work_texts(const Experiment& experiment);
/// With a program that is compiled already.
[[nodiscard]] Result<WorkTexts> work_texts(const Experiment& experiment, const Chain& chain, const Program& program);

}  // namespace causeway
