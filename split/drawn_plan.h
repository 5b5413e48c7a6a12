// Federations drawn at random, on which the planner's claim is tested and measured (tests/split, `causeway bench
// plan`): links of 0.5 to 100 Mbit/s, clients 1 to 30 times slower than the host, four models; and a planned row walked
// batch by batch. Pure, any thread.
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

/// The round of a row, walked with the groups that the planner made. errors: as planned_groups
Result<double> walked(const PlanInput& input, const PlanRow& row);

}  // namespace causeway
