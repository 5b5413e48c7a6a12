// The summary of a dataset. The mean is summed in double, in order: it is for people, not for training.
#include "data/inspect.h"

#include <algorithm>

namespace causeway {

DatasetSummary inspect(const Dataset& dataset) {
    DatasetSummary summary{dataset.name,    dataset.reader,           dataset.size(),      dataset.shape,
                           dataset.classes, label_histogram(dataset), dataset.class_names, dataset.regression()};
    double sum = 0;
    for (const float value : dataset.features) {
        sum += static_cast<double>(value);
    }
    if (!dataset.features.empty()) {
        const auto [least, most] = std::ranges::minmax(dataset.features);
        summary.least = static_cast<double>(least);
        summary.most = static_cast<double>(most);
        summary.mean = sum / static_cast<double>(dataset.features.size());
    }
    summary.digest = dataset_digest(dataset);
    summary.notes = dataset.notes;
    return summary;
}

Json to_json(const DatasetSummary& summary) {
    Json shape = Json::array();
    for (const auto extent : summary.shape) {
        shape.push(extent);
    }
    Json per_class = Json::array();
    for (const auto count : summary.per_class) {
        per_class.push(count);
    }
    Json class_names = Json::array();
    for (const auto& name : summary.class_names) {
        class_names.push(name);
    }
    Json notes = Json::array();
    for (const auto& note : summary.notes) {
        notes.push(note);
    }
    return Json::object()
        .set("name", summary.name)
        .set("reader", summary.reader)
        .set("examples", summary.examples)
        .set("shape", shape)
        .set("classes", summary.classes)
        .set("per_class", per_class)
        .set("min", summary.least)
        .set("max", summary.most)
        .set("mean", summary.mean)
        .set("sha256", summary.digest.hex())
        .set("class_names", class_names)
        .set("target", summary.regression    ? "number"
                       : summary.classes > 0 ? "class"
                                             : "none")
        .set("held_out", summary.held_out)
        .set("notes", notes);
}

}  // namespace causeway
