// Whether experiments can go on from their last models: before anything is served, at a start.
//
// A committed model that is damaged or gone is made again where it can be: the experiment goes back to the newest
// committed one that is whole, and its members do the rounds behind it again. They come to the same bits, and the
// machine holds them to it (the decision `redo`): another model fails the experiment by name. The first model is made
// from the seed (job_models.cpp). Where members keep state between rounds that cannot be undone, or no model is whole,
// the experiment waits, paused, until the file is back. Pure, but for what `whole` reads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "coordinator/recovered.h"

namespace causeway {

struct Rewind {
    ExperimentId experiment = 0;
    std::uint32_t from = 0;  // its last commit, whose model cannot be read
    std::uint32_t to = 0;    // the newest one whose model is whole
    Digest lost;             // of the last commit
};

/// The experiments that are to go back, of those that are not over.
[[nodiscard]] std::vector<Rewind> rewinds(const std::vector<RecoveredExperiment>& experiments,
                                          const std::function<bool(const Digest&)>& whole);

}  // namespace causeway
