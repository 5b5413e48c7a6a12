// Federations drawn at random, on which the planner's claim is tested and measured (tests/split, `causeway bench
// plan`): links of 0.5 to 100 Mbit/s, clients 1 to 30 times slower than the host, five models, some of which are too
// large for the slow lines and some too small to be cut; and a planned row walked batch by batch. Pure, any thread.
#pragma once

#include <string>
#include <vector>

#include "common/random.h"
#include "split/planner.h"

namespace causeway {

struct DrawnModel {
    std::string_view name;
    std::vector<std::string> layers;
    Shape input;
};
const std::vector<DrawnModel>& models_to_plan();

/// Between `least` and `most`, evenly in the logarithm.
double drawn_between(RandomStream& random, double least, double most);
/// 3 to 12 of them.
std::vector<PlanClient> drawn_clients(RandomStream& random);
/// 50 Mbit/s to 1 Gbit/s.
PlanHost drawn_host(RandomStream& random);
/// Of a machine of 0.1 to 10 G operations a second.
LayerTimes drawn_times(const Chain& chain, RandomStream& random, std::uint32_t batch);

/// Federated, and of the two fastest cuts and the slowest one: one group, few, as many as clients, all together, the
/// best.
std::vector<const PlanRow*> telling_rows(const PlanInput& input, const std::vector<PlanRow>& rows);

/// The round of a row, walked with the groups that the planner made. errors: as planned_groups
Result<double> walked(const PlanInput& input, const PlanRow& row);

}  // namespace causeway
