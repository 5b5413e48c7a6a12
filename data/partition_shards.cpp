// shards(labels): every part holds examples of exactly `labels` classes.
//
// The classes are given out evenly: part by part, each takes the classes that were taken least (ties at random), so
// the owners of two classes differ in number by at most one; then each class is cut evenly among its owners. The
// original cuts the sorted data into equal shards, which gives "about" so many classes; here it is exact.
// source: McMahan et al. 2017 (arXiv:1602.05629), section 3, "pathological non-IID"
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "data/partition_tools.h"

namespace causeway {
namespace {

constexpr std::array shards_parameters{
    PartitionParameter{"labels", 2, 1, max_classes, NumberKind::whole, "classes that each part holds"},
};

struct Class {
    std::uint32_t label = 0;
    Indices examples;
    std::vector<std::size_t> owners;  // parts
};

std::vector<Class> present_classes(const PartitionInput& input) {
    auto by_class = examples_by_class(input.labels, input.classes);
    std::vector<Class> classes;
    for (std::uint32_t label = 0; label < input.classes; ++label) {
        if (!by_class[label].empty()) {
            classes.push_back({label, std::move(by_class[label]), {}});
        }
    }
    return classes;
}

// Counts of owners stay within one of each other, so `labels` distinct classes are always free to take.
void choose_owners(std::vector<Class>& classes, std::size_t labels, const PartitionInput& input) {
    auto stream = partition_stream(input.seed, 0);
    for (std::size_t part = 0; part < input.parts; ++part) {
        auto order = stream.permutation(classes.size());
        std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return classes[i].owners.size(); });
        for (std::size_t i = 0; i < labels; ++i) {
            classes[order[i]].owners.push_back(part);
        }
    }
}

// Every class needs an owner, for every example goes somewhere.
Status check_classes(const std::vector<Class>& classes, std::size_t labels, std::size_t parts) {
    if (labels > classes.size()) {
        return fail(ErrorKind::invalid, "partition",
                    fmt::format("shards: {} labels a part, but the dataset has {} classes", labels, classes.size()));
    }
    if (parts * labels < classes.size()) {
        return fail(ErrorKind::invalid, "partition",
                    fmt::format("shards: {} parts of {} labels cannot hold all {} classes: raise one of them", parts,
                                labels, classes.size()));
    }
    return {};
}

// One example for each owner at least, or some part would miss one of its classes.
Status deal_class_in_shards(Class& shared, const PartitionInput& input, Parts& parts) {
    if (shared.examples.size() < shared.owners.size()) {
        return fail(ErrorKind::invalid, "partition",
                    fmt::format("shards: class {} has {} examples for {} parts", shared.label, shared.examples.size(),
                                shared.owners.size()));
    }
    auto stream = partition_stream(input.seed, shared.label + 1);
    shuffle(shared.examples, stream);
    for (std::size_t i = 0; i < shared.examples.size(); ++i) {
        parts[shared.owners[i % shared.owners.size()]].push_back(shared.examples[i]);
    }
    return {};
}

Result<Parts> split_by_shards(const PartitionInput& input) {
    const auto labels = static_cast<std::size_t>(std::llround(input.parameters.at("labels")));
    auto classes = present_classes(input);
    TRY(check_classes(classes, labels, input.parts));
    choose_owners(classes, labels, input);
    Parts parts(input.parts);
    for (auto& shared : classes) {
        TRY(deal_class_in_shards(shared, input, parts));
    }
    return parts;
}

}  // namespace

extern const Partitioner shards_partitioner;
const Partitioner shards_partitioner{"shards", "each part holds exactly `labels` classes", shards_parameters,
                                     LabelUse::required, split_by_shards};

}  // namespace causeway
