// From the caller's examples to the workspace: the host buffers of one batch, filled by what the loss wants.
//
// Internal to model/; the interpreter and evaluation share it. Thread: the trainer's.
#pragma once

#include <vector>

#include "model/trainer.h"
#include "model/workspace.h"

namespace causeway {

class BatchLoader {
public:
    BatchLoader(const Chain& chain, TrainerIo& io) : chain_(chain), io_(io) {}

    /// errors   what the caller's load returns; invalid `label_out_of_range`
    Status load(const BatchPlace& place, Workspace& workspace) {
        features_.resize(place.rows * static_cast<std::uint64_t>(element_count(chain_.input())));
        if (chain_.loss().numeric()) {
            targets_.resize(place.rows * static_cast<std::uint64_t>(chain_.classes()));
            TRY(io_.load_targets(place, features_, targets_));
            return workspace.load_targets(features_, targets_);
        }
        labels_.resize(place.rows);
        TRY(io_.load(place, features_, labels_));
        return workspace.load(features_, labels_);
    }
    /// Of the last batch; empty where the loss wants numbers.
    [[nodiscard]] const std::vector<std::int64_t>& labels() const { return labels_; }
    /// Of the last batch; empty where the loss wants classes.
    [[nodiscard]] const std::vector<float>& targets() const { return targets_; }

private:
    const Chain& chain_;
    TrainerIo& io_;
    std::vector<float> features_;
    std::vector<std::int64_t> labels_;
    std::vector<float> targets_;
};

}  // namespace causeway
