// How an experiment's model is cut and its clients are grouped: what coordinator, planner and tools work from.
//
// The names of an experiment file (cut = "maxpool") become places of the chain here, once; whoever asks later sees
// layers' indices. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "configs/experiment.h"
#include "configs/workload.h"
#include "model/chain.h"
#include "split/grouping.h"
#include "split/relay.h"

namespace causeway {

struct SplitPlan {
    enum class Regroup { once, every_round };

    std::string flow;                 // split | u-shaped | batch-major
    std::vector<std::uint32_t> cuts;  // ascending, one less than stages
    std::uint32_t stages = 2;
    std::uint32_t groups = 1;  // relays side by side; 0: one per client
    std::string grouping;      // of groups that are not one per client
    Groups group_lists;        // of the grouping `fixed`
    Regroup regroup = Regroup::once;
    RelayPlan::Turns turns = RelayPlan::Turns::one_by_one;
    std::uint32_t overlap = 0;
    RelayPlan::LostClient lost_client = RelayPlan::LostClient::wait;
    RelayPlan::Copy handover_copy = RelayPlan::Copy::coordinator;

    bool operator==(const SplitPlan&) const = default;
    /// How many relays a round of so many clients has.
    [[nodiscard]] std::uint32_t relays(std::size_t clients) const {
        return groups == 0 ? static_cast<std::uint32_t>(clients) : groups;
    }
};

/// Nothing for regimes of one stage.
///
/// errors  invalid `bad_cut`: as at submit, where read_experiment reports them with their places
[[nodiscard]] Result<std::optional<SplitPlan>> split_plan_of(const Experiment& experiment, const Chain& chain);

/// The program of a stage's cell. The client's is stage 0 (u-shaped: both ends); the host's is stage 1.
///
/// errors  as compile_flow
[[nodiscard]] Result<Program> stage_program(const SplitPlan& plan, const Chain& chain, std::uint32_t stage);
/// One cell's work for a round, in texts: as work_texts of regimes of one stage.
[[nodiscard]] Result<WorkTexts> work_texts(const Experiment& experiment, const SplitPlan& plan, std::uint32_t stage);

/// The places where a client's segment may end: something before it learns, and something after it.
[[nodiscard]] std::vector<std::uint32_t> valid_cuts(const Chain& chain);
/// The name that a file has for a place: "maxpool", "relu:2".
[[nodiscard]] std::string cut_name(const Chain& chain, std::uint32_t cut);

}  // namespace causeway
