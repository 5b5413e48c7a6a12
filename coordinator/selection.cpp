// Each rule gives every candidate a number; the smallest are taken. Ties go by the drawn order, then by name.
#include "coordinator/selection.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "common/random.h"

namespace causeway {
namespace {

/// Exponential with a rate of the examples: the smallest of such numbers is drawn in proportion to them.
double weighted_key(const Selection& selection, const Candidate& candidate) {
    RandomStream stream({.seed = selection.seed,
                         .purpose = "cohort",
                         .round = selection.round,
                         .node = node_key(candidate.node)});
    const double weight = std::max<double>(static_cast<double>(candidate.examples), 1e-9);  // none: last of all
    return -std::log(1 - stream.uniform()) / weight;
}

double key_of(const Selection& selection, const Candidate& candidate) {
    if (selection.rule == "weighted") {
        return weighted_key(selection, candidate);
    }
    return selection.rule == "availability" ? candidate.last_drawn : 0;
}

}  // namespace

std::vector<std::string> select(const Selection& selection, const std::vector<Candidate>& candidates) {
    RandomStream stream({.seed = selection.seed, .purpose = "cohort", .round = selection.round});
    const auto order = stream.permutation(candidates.size());
    std::vector<std::tuple<double, std::size_t, std::string>> ranked;
    for (std::size_t place = 0; place < order.size(); ++place) {
        const auto& candidate = candidates[order[place]];
        ranked.emplace_back(key_of(selection, candidate), place, candidate.node);
    }
    std::ranges::sort(ranked);
    ranked.resize(std::min<std::size_t>(ranked.size(), selection.wanted));
    std::vector<std::string> names;
    for (auto& [key, place, name] : ranked) {
        names.push_back(std::move(name));
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace causeway
