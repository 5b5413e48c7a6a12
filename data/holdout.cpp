// The held-out share: drawn per class, so that a small set keeps the balance of the labels.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "data/partition.h"
#include "data/partition_tools.h"

namespace causeway {
namespace {

// One list per class; a set without labels is one class.
std::vector<Indices> strata(const Dataset& dataset) {
    if (dataset.labelled()) {
        return examples_by_class(dataset.labels, dataset.classes);
    }
    Indices all(dataset.size());
    std::ranges::generate(all, [next = std::uint32_t{0}]() mutable { return next++; });
    return {std::move(all)};
}

// How many of each stratum are held out: its exact share rounded down or up, `total` in all.
std::vector<std::size_t> held_counts(const std::vector<Indices>& strata, std::size_t total) {
    std::vector<double> sizes;
    for (const auto& stratum : strata) {
        sizes.push_back(static_cast<double>(stratum.size()));
    }
    return proportional_counts(sizes, total);
}

}  // namespace

Result<Holdout> split_holdout(const Dataset& dataset, double share, std::uint64_t seed) {
    if (!(share >= 0 && share < 1)) {
        return fail(ErrorKind::invalid, "holdout",
                    fmt::format("holdout: {}% is outside the range from 0% to below 100%", share * 100));
    }
    // The total is fixed first and then shared out: rounding each class by itself would miss the share on small sets.
    const auto total = static_cast<std::size_t>(std::llround(share * static_cast<double>(dataset.size())));
    if ((share > 0 && total == 0) || total >= dataset.size()) {
        return fail(ErrorKind::invalid, "holdout",
                    fmt::format("holdout: {}% of the {} examples of '{}' leaves one side empty", share * 100,
                                dataset.size(), dataset.name));
    }
    auto classes = strata(dataset);
    const auto counts = held_counts(classes, total);
    Holdout result;
    for (std::size_t label = 0; label < classes.size(); ++label) {
        RandomStream stream(RandomKey{.seed = seed, .purpose = "holdout", .step = label});
        shuffle(classes[label], stream);
        const auto cut = classes[label].begin() + static_cast<std::ptrdiff_t>(counts[label]);
        result.held_out.insert(result.held_out.end(), classes[label].begin(), cut);
        result.train.insert(result.train.end(), cut, classes[label].end());
    }
    std::ranges::sort(result.held_out);
    std::ranges::sort(result.train);
    return result;
}

Result<Division> divide(const Dataset& dataset, double holdout_share, const PartitionSpec& spec, std::size_t parts,
                        std::uint64_t seed) {
    TRY_ASSIGN(auto holdout, split_holdout(dataset, holdout_share, seed));
    TRY_ASSIGN(auto drawn, partition(subset(dataset, holdout.train), spec, parts, seed));
    // From positions among the training examples back to the dataset's own indices.
    for (auto& part : drawn) {
        for (auto& index : part) {
            index = holdout.train[index];
        }
    }
    return Division{std::move(drawn), std::move(holdout.held_out)};
}

}  // namespace causeway
