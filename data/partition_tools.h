// Steps that several partitioners share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/random.h"
#include "data/partition.h"

namespace causeway {

/// The stream of a partition. `what` tells the draws of one partition apart (a class, a part); 0 where there is one.
[[nodiscard]] RandomStream partition_stream(std::uint64_t seed, std::uint64_t what);

/// The examples of each class, ascending. shapes: [classes]
[[nodiscard]] std::vector<Indices> examples_by_class(std::span<const std::uint32_t> labels, std::uint32_t classes);

/// Whole counts proportional to the weights that add up to `total`: rounded down, and what is left goes to the largest
/// remainders (ties to the lower index). Weights are finite, not negative, and not all zero.
[[nodiscard]] std::vector<std::size_t> proportional_counts(std::span<const double> weights, std::size_t total);

/// The same order, in place. Fisher-Yates by the stream.
void shuffle(Indices& indices, RandomStream& stream);

/// Each empty part takes the last example of the part that is largest at that moment (ties to the lower index).
/// There are at least as many examples as parts.
void fill_empty_parts(Parts& parts);

}  // namespace causeway
