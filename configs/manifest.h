// A manifest: what a data owner writes beside a dataset, so that `--data NAME=PATH.toml` needs no other words.
//
//   reader   = "csv"                       else by the file's name and content
//   file     = "patients.csv.gz"           or a folder; beside the manifest or below it
//   label    = "outcome"                   a column's name, its number from 0, or "last"
//   features = ["age", "hb..lactate", 9]   names, numbers and ranges, in the order of the model's input
//   classes  = ["home", "ward"]            names of class 0, 1, ...; the label may be written as one
//   target   = "number"                    for regression
//   categories = { sex = ["f", "m"] }      columns of words, each one value per word
//   missing  = "drop"                      or a number that stands for a missing value
//   header = "no", separator = ";", encoding = "cp1252", decimal = ",", quote = "none"     of a table, else by looking
//   split    = { holdout = "20%", seed = 7 }  or  { test = "patients-test.csv.gz" }
//
// docs/data.md tells the same to the person who writes one. A manifest may come from anybody: its size and lists have
// limits, and its paths cannot leave its folder. Parsing is pure; reading is in configs/dataset_file.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "configs/reader.h"
#include "data/data_options.h"

namespace causeway {

constexpr std::size_t max_manifest_bytes = 256 * 1024;
constexpr std::size_t max_manifest_features = 16'384;  // items of the list; a range names any number of columns
constexpr std::size_t max_manifest_classes = 4096;
constexpr std::size_t max_class_name_bytes = 80;

struct Manifest {
    FileChoice choice;
    std::string file;   // as written: relative, never leaving the folder by its words
    std::string test;   // likewise; empty: no second file
    std::string label;  // empty: the experiment's, or the format's own
    std::optional<Target> target;
    std::vector<Category> categories;
    std::optional<MissingRule> missing;
    TableForm form;
    double holdout = 0;  // share of `file` that is not trained on
    std::uint64_t seed = 1;
    std::map<std::string, Place, std::less<>> places;  // of the values that were given: "split.test"
    std::vector<Place> feature_places;                 // [choice.features]
};

struct ManifestText {
    Manifest manifest;                // of what could be read
    std::vector<ConfigError> errors;  // in the order of the file
};

/// Every mistake that shows without looking at the data.
[[nodiscard]] ManifestText parse_manifest(std::string_view text, std::string_view file_name);

}  // namespace causeway
