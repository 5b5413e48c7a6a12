// Counting, shuffling and filling up, for partitioners. Ties always go to the lower index: nothing may depend on how
// a sort treats equals.
#include "data/partition_tools.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/assert.h"

namespace causeway {

RandomStream partition_stream(std::uint64_t seed, std::uint64_t what) {
    return RandomStream(RandomKey{.seed = seed, .purpose = "partition", .step = what});
}

std::vector<Indices> examples_by_class(std::span<const std::uint32_t> labels, std::uint32_t classes) {
    std::vector<Indices> examples(classes);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        examples[labels[i]].push_back(static_cast<std::uint32_t>(i));
    }
    return examples;
}

std::vector<std::size_t> proportional_counts(std::span<const double> weights, std::size_t total) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    ASSERT(std::isfinite(sum) && sum > 0);
    std::vector<std::size_t> counts;
    std::vector<double> remainders;
    for (const double weight : weights) {
        const double exact = weight / sum * static_cast<double>(total);
        counts.push_back(static_cast<std::size_t>(exact));
        remainders.push_back(exact - std::floor(exact));
    }
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return remainders[i]; });
    // Rounding of the weights can leave the sum a little above the total as well: then the smallest remainders give.
    auto given = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    for (std::size_t i = 0; given < total; i = (i + 1) % order.size(), ++given) {
        ++counts[order[i]];
    }
    for (std::size_t i = order.size(); given > total; i = i == 1 ? order.size() : i - 1) {
        auto& count = counts[order[i - 1]];
        given -= count > 0 ? 1 : 0;
        count -= count > 0 ? 1 : 0;
    }
    return counts;
}

void shuffle(Indices& indices, RandomStream& stream) {
    Indices shuffled;
    shuffled.reserve(indices.size());
    for (const auto position : stream.permutation(indices.size())) {
        shuffled.push_back(indices[position]);
    }
    indices = std::move(shuffled);
}

void fill_empty_parts(Parts& parts) {
    for (auto& part : parts) {
        if (part.empty()) {
            auto& largest = *std::ranges::max_element(parts, {}, [](const Indices& p) { return p.size(); });
            ASSERT(largest.size() > 1);
            part.push_back(largest.back());
            largest.pop_back();
        }
    }
}

}  // namespace causeway
