// From the keys of a split regime to places of the chain and rules of the relay.
#include "configs/split_plan.h"

#include <fmt/format.h>

#include "configs/split_checks.h"
#include "split/flow.h"

namespace causeway {

Result<std::optional<SplitPlan>> split_plan_of(const Experiment& experiment, const Chain& chain) {
    if (!is_split(experiment)) {
        return std::optional<SplitPlan>();
    }
    SplitPlan plan;
    plan.flow = experiment.flow.kind;
    plan.stages = experiment.mesh.stages;
    for (const auto& cut : experiment.regime.cut) {
        TRY_ASSIGN(const auto place, chain.cut_index(cut));
        plan.cuts.push_back(static_cast<std::uint32_t>(place));
    }
    plan.groups = groups_of(experiment);
    plan.grouping = experiment.regime.grouping;
    plan.group_lists = experiment.regime.group_lists;
    plan.regroup = experiment.regime.regroup == "once" ? SplitPlan::Regroup::once : SplitPlan::Regroup::every_round;
    plan.turns = plan.flow == "batch-major" ? RelayPlan::Turns::together : RelayPlan::Turns::one_by_one;
    plan.overlap = experiment.regime.overlap;
    plan.lost_client =
        experiment.sync.lost_client == "skip" ? RelayPlan::LostClient::skip : RelayPlan::LostClient::wait;
    plan.handover_copy = experiment.sync.handover_copy == "none" ? RelayPlan::Copy::none : RelayPlan::Copy::coordinator;
    TRY(stage_of(chain, plan.cuts, 0));
    return std::optional(std::move(plan));
}

Result<Program> stage_program(const SplitPlan& plan, const Chain& chain, std::uint32_t stage) {
    return compile_flow(
        plan.flow,
        {.chain = chain, .cell = {.stage = stage}, .stages = plan.stages, .cuts = plan.cuts, .overlap = plan.overlap});
}

Result<WorkTexts> work_texts(const Experiment& experiment, const SplitPlan& plan, std::uint32_t stage) {
    TRY_ASSIGN(const auto chain, chain_of(experiment));
    TRY_ASSIGN(const auto program, stage_program(plan, chain, stage));
    return work_texts(experiment, chain, program);
}

std::vector<std::uint32_t> valid_cuts(const Chain& chain) {
    std::vector<std::uint32_t> cuts;
    for (std::uint32_t cut = 1; cut < chain.layer_count(); ++cut) {
        const auto after = chain.arena_range(ArenaKind::trainable, cut, chain.layer_count());
        if (chain.gradient_needed(cut) && after.size() > 0) {
            cuts.push_back(cut);
        }
    }
    return cuts;
}

std::string cut_name(const Chain& chain, std::uint32_t cut) {
    const auto kind = chain.layer(cut - 1).kind();
    std::size_t which = 0;
    for (std::uint32_t i = 0; i < cut; ++i) {
        which += chain.layer(i).kind() == kind ? 1 : 0;
    }
    return which == 1 ? std::string(kind) : fmt::format("{}:{}", kind, which);
}

}  // namespace causeway
