// What can be done with a dataset in memory. Every operation keeps the invariants that the header states.
#include "data/dataset.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/assert.h"

namespace causeway {

std::size_t Dataset::example_size() const {
    std::size_t product = 1;
    for (const auto extent : shape) {
        product *= static_cast<std::size_t>(extent);
    }
    return product;
}

std::size_t Dataset::size() const {
    return features.size() / example_size();
}

Digest dataset_digest(const Dataset& dataset) {
    Hasher hasher;
    hasher.update(fmt::format("causeway-dataset 1\nshape {}\nexamples {}\nlabels {}\n", shape_text(dataset.shape),
                              dataset.size(), dataset.labelled() ? "yes" : "no"));
    hasher.update(std::as_bytes(std::span(dataset.features)));
    hasher.update(std::as_bytes(std::span(dataset.labels)));
    if (dataset.regression()) {
        hasher.update(std::string_view("targets\n"));
        hasher.update(std::as_bytes(std::span(dataset.targets)));
    }
    return hasher.finish();
}

Dataset subset(const Dataset& dataset, std::span<const std::uint32_t> indices) {
    Dataset part{dataset.name, dataset.reader, dataset.shape, {}, {}, dataset.classes, dataset.layout};
    part.class_names = dataset.class_names;
    part.notes = dataset.notes;
    part.skipped = dataset.skipped;
    const std::size_t width = dataset.example_size();
    part.features.reserve(indices.size() * width);
    part.labels.reserve(dataset.labelled() ? indices.size() : 0);
    for (const auto index : indices) {
        ASSERT(index < dataset.size());
        const auto first = dataset.features.begin() + static_cast<std::ptrdiff_t>(index * width);
        part.features.insert(part.features.end(), first, first + static_cast<std::ptrdiff_t>(width));
        if (dataset.labelled()) {
            part.labels.push_back(dataset.labels[index]);
        }
        if (dataset.regression()) {
            part.targets.push_back(dataset.targets[index]);
        }
    }
    return part;
}

/// Layouts must be equal too: a header in another order would put values under the wrong name without an error.
Status require_same_kind(const Dataset& whole, const Dataset& part) {
    if (part.shape != whole.shape || part.labelled() != whole.labelled() || part.layout != whole.layout ||
        part.regression() != whole.regression()) {
        return fail(ErrorKind::corrupt, "parts_differ",
                    fmt::format("{}: its columns, shape or labels are not those of the parts before it", part.name));
    }
    return {};
}

Status append(Dataset& whole, const Dataset& part) {
    TRY(require_same_kind(whole, part));
    whole.features.insert(whole.features.end(), part.features.begin(), part.features.end());
    whole.labels.insert(whole.labels.end(), part.labels.begin(), part.labels.end());
    whole.targets.insert(whole.targets.end(), part.targets.begin(), part.targets.end());
    whole.classes = std::max(whole.classes, part.classes);
    return {};
}

std::string class_text(const std::vector<std::string>& names, std::size_t label) {
    return label < names.size() ? names[label] : std::to_string(label);
}

Status reshape(Dataset& dataset, const std::vector<std::int64_t>& shape) {
    const std::size_t before = dataset.example_size();
    Dataset target;  // only to multiply
    target.shape = shape;
    if (target.example_size() != before) {
        // The commonest mistake: the label was not named and counts as a feature.
        const bool one_more = target.example_size() + 1 == before && !dataset.labelled() && !dataset.regression();
        return fail(ErrorKind::invalid, "shape_mismatch",
                    fmt::format("shape {} holds {} values, but an example of '{}' has {} ({}){}", shape_text(shape),
                                target.example_size(), dataset.name, before, shape_text(dataset.shape),
                                one_more ? ": say which column is the label" : ""));
    }
    dataset.shape = shape;
    return {};
}

Status apply_scale(Dataset& dataset, const Scale& scale) {
    const double from = scale.from.high - scale.from.low;
    const double to = scale.to.high - scale.to.low;
    for (std::size_t i = 0; i < dataset.features.size(); ++i) {
        // Multiplied before divided, so that both ends of the interval map exactly wherever the product is exact.
        const double offset = static_cast<double>(dataset.features[i]) - scale.from.low;
        const auto value = static_cast<float>(scale.to.low + offset * to / from);
        if (!std::isfinite(value)) {
            return fail(ErrorKind::invalid, "scale_overflow",
                        fmt::format("example {} of '{}': {} scaled by {} is not a finite number",
                                    i / dataset.example_size() + 1, dataset.name, dataset.features[i], to_text(scale)));
        }
        dataset.features[i] = value;
    }
    return {};
}

Status require_labels_below(const Dataset& dataset, std::uint32_t outputs) {
    if (!dataset.labelled()) {
        return fail(ErrorKind::invalid, "no_labels",
                    fmt::format("dataset '{}' has no labels: name the label column (label = \"last\")", dataset.name));
    }
    const auto wrong = std::ranges::find_if(dataset.labels, [&](std::uint32_t label) { return label >= outputs; });
    if (wrong == dataset.labels.end()) {
        return {};
    }
    return fail(ErrorKind::invalid, "label_out_of_range",
                fmt::format("example {} of '{}' has label {}, but the model has {} outputs (labels 0 to {})",
                            wrong - dataset.labels.begin() + 1, dataset.name, *wrong, outputs,
                            static_cast<std::int64_t>(outputs) - 1));
}

std::vector<std::uint64_t> label_histogram(const Dataset& dataset) {
    std::vector<std::uint64_t> counts(dataset.classes);
    for (const auto label : dataset.labels) {
        ++counts[label];
    }
    return counts;
}

std::vector<std::uint64_t> label_histogram(const Dataset& dataset, std::span<const std::uint32_t> indices) {
    std::vector<std::uint64_t> counts(dataset.classes);
    for (const auto index : indices) {
        ASSERT(index < dataset.size());
        if (dataset.labelled()) {
            ++counts[dataset.labels[index]];
        }
    }
    return counts;
}

}  // namespace causeway
