// What a path after `--data NAME=` stands for: a file, a folder, or a manifest that says how to read them.
//
// Every process that opens a dataset (node, coordinator, commands) does it here, so that a manifest means the same
// everywhere. A manifest's words about its own columns go over the experiment's, which cannot know them; shape and
// scale are the experiment's. Thread: any; reads files.
#pragma once

#include <filesystem>
#include <optional>

#include "data/reader.h"

namespace causeway {

/// A dataset, and what of it is kept from training.
struct DatasetFile {
    Dataset train;
    std::optional<Dataset> test;  // a manifest's second file or share; or drawn by prepare_examples
    Digest digest;                // of a manifest's text and all values that it selects; else of the values

    /// Both parts in one, for who divides them anew.
    [[nodiscard]] Result<Dataset> whole() &&;
};

[[nodiscard]] bool is_manifest(const std::filesystem::path& path);

/// Values as stored, in the options' shape; the scale is not applied.
///
/// errors  invalid `bad_manifest`: every mistake in one message, one line each with its place; those of read_dataset
[[nodiscard]] Result<DatasetFile> read_dataset_file(const std::filesystem::path& path, const DataOptions& options,
                                                    const ReadLimits& limits = {});

/// What a node works on: scaled as the options say, and with the options' share held out by `seed` where no manifest
/// holds anything out. Too few examples to hold out any: all are trained on.
///
/// errors  invalid: the scale or the shape does not fit
[[nodiscard]] Status prepare_examples(DatasetFile& file, const DataOptions& options, std::uint64_t seed);

}  // namespace causeway
