// What `data inspect` says about a dataset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/json.h"
#include "data/dataset.h"

namespace causeway {

struct DatasetSummary {
    std::string name;
    std::string reader;
    std::uint64_t examples = 0;
    std::vector<std::int64_t> shape;
    std::uint32_t classes = 0;
    std::vector<std::uint64_t> per_class;  // [classes]
    std::vector<std::string> class_names;  // empty: none were given
    bool regression = false;               // labels are numbers
    std::uint64_t held_out = 0;            // examples beside these that a manifest keeps from training
    double least = 0;                      // of all features
    double most = 0;
    double mean = 0;
    Digest digest;
    std::vector<std::string> notes;  // how the file was read, what was left out
};

/// cost  one pass over the features and their digest
[[nodiscard]] DatasetSummary inspect(const Dataset& dataset);

/// {"name","reader","examples","shape":[..],"classes","per_class":[..],"min","max","mean","sha256",
/// "class_names":[..],"target","held_out","notes":[..]}
[[nodiscard]] Json to_json(const DatasetSummary& summary);

}  // namespace causeway
