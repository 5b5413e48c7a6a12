// The part of an Assign that is the same for every member and round of an experiment.
#pragma once

#include "configs/experiment.h"
#include "wire/message.h"

namespace causeway {

/// Without lease, model, cohort and deadline. errors: as work_texts (configs/workload.h)
Result<Assign> assignment_of(const Experiment& experiment, const std::string& submitted_by);

}  // namespace causeway
