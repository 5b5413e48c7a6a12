// What training a model with a batch takes in memory, part by part: for people before a run, and for nodes that refuse.
//
// It follows model/memory_plan.h: values live from the forward to the backward pass unless a layer runs in place or its
// block is recomputed, gradients at boundaries take turns in two buffers. The kernels' own memory is not counted.
#pragma once

#include "model/chain.h"
#include "model/optimizer.h"
#include "model/program.h"

namespace causeway {

struct Footprint {
    std::uint64_t parameters = 0;        // trainable values
    std::uint64_t buffers = 0;           // values that layers observe
    std::uint64_t weight_bytes = 0;      // both, and frozen ones
    std::uint64_t gradient_bytes = 0;
    std::uint64_t optimizer_bytes = 0;
    std::uint64_t activation_bytes = 0;  // of the rows at once, with the gradients at boundaries

    bool operator==(const Footprint&) const = default;
    [[nodiscard]] std::uint64_t total_bytes() const {
        return weight_bytes + gradient_bytes + optimizer_bytes + activation_bytes;
    }
};

/// Of `rows` examples at once, a batch's or a microbatch's; recomputed blocks share what one of them keeps.
///
/// errors   as Device::prepare, for a model that no backend could train
/// cost     prepares nothing on the machine: shapes alone decide
Result<Footprint> footprint_of(const Chain& chain, const OptimizerSpec& optimizer, std::int64_t rows,
                               std::vector<LayerInterval> recomputed = {});

/// "17,578 parameters; with a batch of 32: weights 70.3 KB, gradients 70.3 KB, optimizer 70.3 KB, activations 1.20 MB,
/// 1.41 MB in all"
std::string to_text(const Footprint& footprint, std::int64_t rows);

}  // namespace causeway
