// quantity(power): random samples whose sizes follow a power law: the r-th largest part is about r^-power of the
// largest. Which part has which rank is drawn as well. power 0 is iid.
// source: quantity skew of Li et al. 2021 (arXiv:2102.02079), with a power law in place of a Dirichlet draw
#include <array>
#include <cmath>

#include "data/partition_tools.h"

namespace causeway {
namespace {

constexpr std::array quantity_parameters{
    PartitionParameter{"power", 1, 0, 10, NumberKind::real, "how fast sizes fall: 0 is equal sizes"},
};

Result<Parts> split_by_quantity(const PartitionInput& input) {
    std::vector<double> weights;
    for (std::size_t rank = 1; rank <= input.parts; ++rank) {
        weights.push_back(std::pow(static_cast<double>(rank), -input.parameters.at("power")));
    }
    const auto counts = proportional_counts(weights, input.examples);
    auto stream = partition_stream(input.seed, 0);
    // Without this draw the first client would be the largest in every experiment.
    const auto part_of_rank = stream.permutation(input.parts);
    const auto order = stream.permutation(input.examples);
    Parts parts(input.parts);
    auto next = order.begin();
    for (std::size_t rank = 0; rank < input.parts; ++rank) {
        const auto end = next + static_cast<std::ptrdiff_t>(counts[rank]);
        parts[part_of_rank[rank]].assign(next, end);
        next = end;
    }
    fill_empty_parts(parts);
    return parts;
}

}  // namespace

extern const Partitioner quantity_partitioner;
const Partitioner quantity_partitioner{"quantity", "random samples whose sizes fall by a power law",
                                       quantity_parameters, LabelUse::none, split_by_quantity};

}  // namespace causeway
