// Weights in the form that a product likes best, kept by the version of the arena that they come from.
//
// Packing costs about what it saves in one product. In plain training each version is used once forward and once
// backward, in different forms, so nothing is gained; with microbatches, and in evaluation, a version is used again and
// again. So the first use of a version takes the plain weights and the second packs them: a rule of the program, never
// of a timing, and the bits are the same either way (kernels/backend.h). Thread: the trainer's.
#pragma once

#include <memory>

#include "kernels/device.h"

namespace causeway {

/// Of one tensor, for one plan. The plan stays the same.
class PackedWeights {
public:
    /// What Plan::run_packed is given for these weights; null: the plain ones. `version` is above 0.
    ///
    /// errors   overloaded: no memory; as Plan::pack
    /// cost     allocates once, when a version is used twice for the first time
    Result<const void*> at(const Device& device, Plan& plan, const Operand& weights, std::uint64_t version) {
        const bool again = version == version_;
        if (!again) {
            version_ = version;
            packed_ = false;
        }
        if (!again || plan.packed_bytes() == 0) {
            return nullptr;
        }
        if (!packed_) {
            if (memory_ == nullptr) {
                TRY_ASSIGN(memory_, device.allocate(plan.packed_bytes()));
            }
            TRY(plan.pack(weights, memory_.get()));
            packed_ = true;
        }
        return memory_.get();
    }

private:
    std::uint64_t version_ = 0;
    bool packed_ = false;
    std::shared_ptr<void> memory_;
};

}  // namespace causeway
