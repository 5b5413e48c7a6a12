// dirichlet(alpha): each class is divided by shares drawn from Dirichlet(alpha), independently of the other classes.
//
// A small alpha gives each part few classes and uneven sizes, a large one approaches iid. A part that got nothing takes
// one example from the largest; nothing is redrawn, so one draw is always enough.
// source: Hsu, Qi, Brown 2019 (arXiv:1909.06335); the per-class form of Li et al. 2021 (arXiv:2102.02079)
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "data/partition_tools.h"

namespace causeway {
namespace {

constexpr std::array dirichlet_parameters{
    PartitionParameter{"alpha", 0.5, 1e-3, 1e6, NumberKind::real, "concentration: small is uneven, large is iid"},
};

// Gamma draws, whose normalised values are the Dirichlet's. Where a tiny alpha makes all of them vanish, the limit: one
// part has the whole class.
std::vector<double> draw_shares(double alpha, std::size_t parts, RandomStream& stream) {
    std::vector<double> shares(parts);
    for (auto& share : shares) {
        share = stream.gamma(alpha);
    }
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (!std::isnormal(sum)) {
        std::ranges::fill(shares, 0.0);
        shares[stream.below(parts)] = 1;
    }
    return shares;
}

void deal_class_by_shares(Indices examples, std::uint32_t label, const PartitionInput& input, Parts& parts) {
    auto stream = partition_stream(input.seed, label + 1);
    const auto shares = draw_shares(input.parameters.at("alpha"), input.parts, stream);
    const auto counts = proportional_counts(shares, examples.size());
    shuffle(examples, stream);
    auto next = examples.begin();
    for (std::size_t part = 0; part < parts.size(); ++part) {
        const auto end = next + static_cast<std::ptrdiff_t>(counts[part]);
        parts[part].insert(parts[part].end(), next, end);
        next = end;
    }
}

Result<Parts> split_by_dirichlet(const PartitionInput& input) {
    Parts parts(input.parts);
    auto by_class = examples_by_class(input.labels, input.classes);
    for (std::uint32_t label = 0; label < input.classes; ++label) {
        if (!by_class[label].empty()) {
            deal_class_by_shares(std::move(by_class[label]), label, input, parts);
        }
    }
    fill_empty_parts(parts);
    return parts;
}

}  // namespace

extern const Partitioner dirichlet_partitioner;
const Partitioner dirichlet_partitioner{"dirichlet",
                                        "uneven labels and sizes, by Dirichlet(alpha) shares of each class",
                                        dirichlet_parameters, LabelUse::required, split_by_dirichlet};

}  // namespace causeway
