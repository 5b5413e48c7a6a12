// A planned round, run for real on the virtual clock: coordinator, sessions, training and sums, with the plan's links,
// speeds and layer times. What the planner says is held against it (tests/simulation, `causeway bench plan`).
//
// Examples are random, since a round's time does not depend on what they say; groups are those that the plan was made
// with, written into the experiment as lists. Thread: one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/trainer.h"
#include "split/planner.h"

namespace causeway::simulation {

/// What the plan's input does not say, because times do not depend on it.
struct PlannedModel {
    std::vector<std::string> layers;  // texts of the input's chain
    std::string optimizer;            // lines of [train]
};

/// Seconds from the round's beginning to its commit.
///
/// errors   as predict_rounds; io `run_failed`: the experiment did not succeed
Result<double> run_planned(const PlanInput& input, const PlanRow& row, const PlannedModel& model,
                           const std::shared_ptr<Trainer>& trainer);

}  // namespace causeway::simulation
