// What the files of the trainer share: the checks of a job. Internal to model/.
#pragma once

#include "model/trainer.h"

namespace causeway {

/// The sizes of a packed state that came from elsewhere: the workspace asserts them.
///
/// errors   invalid `model_mismatch`
Status check_model_state(const Segment& segment, const ModelState& state);

/// Of a batch, or of a microbatch where the program works by them: what the workspace has room for.
std::uint64_t rows_at_once(const TrainJob& job, std::uint64_t examples);

}  // namespace causeway
