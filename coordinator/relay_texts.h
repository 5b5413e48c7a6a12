// What a regime of relays means to a round: the two sides of every turn, and how clients are grouped. As texts and
// names, so that the machines need not know models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "configs/experiment.h"
#include "split/relay.h"
#include "split/segment_memory.h"

namespace causeway {

/// What one side of every turn does.
struct CellTexts {
    std::uint32_t cell = 0;
    std::string segment;  // its layers
    std::string program;
};

struct RelayTexts {
    enum class Loss { at_client, at_host };
    enum class Regroup { once, every_round };

    CellTexts client;
    CellTexts host;
    Loss loss = Loss::at_host;
    std::uint32_t groups = 1;  // 0: one per client
    std::string grouping;
    Groups group_lists;
    Regroup regroup = Regroup::once;
    RelayPlan::LostClient lost_client = RelayPlan::LostClient::wait;
    RelayPlan::Copy handover_copy = RelayPlan::Copy::coordinator;
    RelayPlan::Turns turns = RelayPlan::Turns::one_by_one;
    SegmentMemory host_memory{};  // of one group
};

/// Nothing for regimes without relays. errors: as split_plan_of (configs/split_plan.h)
Result<std::optional<RelayTexts>> relay_texts_of(const Experiment& experiment);

}  // namespace causeway
