// What a round would take in each regime, at every cut and group count: the cost model, asked for all of them.
//
// Input is what is measured: each client's link and how much slower than the reference machine it computes, and the
// reference machine's time for each layer. Which of the rows is best is a question of the round's time, within the
// memory that host and clients have; accuracy per round is not predicted. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "model/chain.h"
#include "split/cost_model.h"
#include "split/program_acts.h"

namespace causeway {

/// A client as it is declared or measured.
struct PlanClient {
    std::string name;
    double uplink = 0;  // bytes a second, above 0
    double downlink = 0;
    double delay = 0;     // one way, seconds
    double slowness = 1;  // its computing takes so many times as long as the reference machine's
    std::uint64_t examples = 0;
    bool operator==(const PlanClient&) const = default;
};

struct PlanHost {
    double slowness = 1;
    double uplink = 0;         // bytes a second, 0: no limit, as beside the coordinator
    double downlink = 0;
    double delay = 0;          // one way
    std::uint64_t memory = 0;  // bytes for server segments, 0: no limit
};

struct PlanInput {
    const Chain& chain;
    std::vector<PlanClient> clients;
    LayerTimes times;
    PlanHost host;
    std::uint64_t client_memory = 0;  // of each client, 0: no limit
    std::uint32_t batch = 32;         // examples
    std::uint32_t local_epochs = 1;
    std::uint32_t optimizer_moments = 0;  // arrays of the size of the parameters
    std::string grouping = "time";
    std::uint64_t seed = 0;
    std::uint32_t overlap = 0;
    bool handover_copies = true;  // the coordinator keeps the host's segment after each turn
};

struct PlanRow {
    std::string regime;        // federated | split | splitfed-v1 | splitfed-v2 | gsfl
    std::uint32_t cut = 0;     // 0: none
    std::uint32_t groups = 0;  // of splitfed-v2 its clients, which share one server segment
    RoundCost cost;
    std::uint64_t client_memory = 0;  // weights, gradients, optimizer, values of a batch; an overlap's stash
    std::uint64_t smashed_bytes = 0;  // of one batch
    double aggregation_seconds = 0;   // of its replicas, in cost.seconds
    bool fits = true;                 // in the memory that is there
};

/// Federated, then every cut with every group count of `group_counts`, and with all clients together.
///
/// errors  invalid `bad_plan`: no clients, a rate or time that is not above 0; as make_groups
/// cost    cuts x group counts x clients
Result<std::vector<PlanRow>> predict_rounds(const PlanInput& input);
/// 1 to 16 and doubling from there, and as many as there are clients.
std::vector<std::uint32_t> group_counts(std::size_t clients);

/// The fastest row that fits, of the regime if one is named; of equal ones the first. nullptr: none fits.
const PlanRow* best_row(const std::vector<PlanRow>& rows, const std::string& regime = "");

/// What a client's turn is made of, for whoever simulates it: the profile of its segment and what crosses the cut.
ClientProfile profile_of(const PlanInput& input, const PlanClient& client, std::uint32_t cut);
/// Of all clients, in the order in which a host takes those that are together.
std::vector<ClientProfile> profiles_by_name(const PlanInput& input, std::uint32_t cut);
SplitCosts costs_of(const PlanInput& input, std::uint32_t cut);
/// The groups that the experiment's rule makes of the predicted turns. errors: as make_groups
Result<std::vector<std::vector<ClientProfile>>> planned_groups(const PlanInput& input, std::uint32_t cut,
                                                               std::uint32_t groups);

}  // namespace causeway
