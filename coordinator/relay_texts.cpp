// See relay_texts.h.
#include "coordinator/relay_texts.h"

#include "configs/split_plan.h"
#include "configs/workload.h"
#include "model/segment.h"
#include "split/flow.h"

namespace causeway {
namespace {

/// Cells are numbered as the programs name them; clients that are together count up from the first one's number.
Result<CellTexts> side(const SplitPlan& plan, const Chain& chain, std::uint32_t stage) {
    TRY_ASSIGN(const auto program, stage_program(plan, chain, stage));
    const bool counts_up = stage == client_cell && plan.turns == RelayPlan::Turns::together;
    return CellTexts{.cell = counts_up ? first_client_cell : stage,
                     .segment = to_text(layers_of(program)),
                     .program = to_text(program)};
}

}  // namespace

Result<std::optional<RelayTexts>> relay_texts_of(const Experiment& experiment) {
    TRY_ASSIGN(const auto chain, chain_of(experiment));
    TRY_ASSIGN(const auto plan, split_plan_of(experiment, chain));
    if (!plan) {
        return std::optional<RelayTexts>{};
    }
    RelayTexts texts;
    TRY_ASSIGN(texts.client, side(*plan, chain, 0));
    TRY_ASSIGN(texts.host, side(*plan, chain, 1));
    TRY_ASSIGN(const auto optimizer, optimizer_of(experiment));
    TRY_ASSIGN(const auto hosted, parse_intervals(texts.host.segment));
    texts.host_memory = segment_memory(chain, hosted, optimizer.kind->moments(optimizer));
    texts.loss = plan->stages == 3 ? RelayTexts::Loss::at_client : RelayTexts::Loss::at_host;
    texts.groups = plan->groups;
    texts.grouping = plan->grouping;
    texts.group_lists = plan->group_lists;
    texts.regroup =
        plan->regroup == SplitPlan::Regroup::once ? RelayTexts::Regroup::once : RelayTexts::Regroup::every_round;
    texts.lost_client = plan->lost_client;
    texts.handover_copy = plan->handover_copy;
    texts.turns = plan->turns;
    return std::optional(std::move(texts));
}

}  // namespace causeway
