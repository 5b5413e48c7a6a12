// Parts of a dataset as files: what `data split` writes for nodes to hold, and the demo for its clients.
//
// A part is a CSV.gz of the values as they were stored (a float's shortest text that reads back to the same bits),
// with the source's columns in their places, so the options that read the source read the part. Its first line keeps
// what a part alone cannot know: `# causeway header=no label=64 classes=10 shape=8x8x1`. Equal input gives equal bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/output_file.h"
#include "data/dataset.h"
#include "data/partition.h"

namespace causeway {

/// The file's bytes. `raw` comes from read_raw_dataset (a scaled set would be scaled twice when read back).
[[nodiscard]] Bytes encode_part(const Dataset& raw);

struct DividePlan {
    std::size_t parts = 1;
    double holdout = 0;  // share in [0, 1)
    PartitionSpec partition;
    std::uint64_t seed = 0;
};

struct WrittenPart {
    std::filesystem::path path;
    std::size_t examples = 0;
    Digest digest;  // of the raw part, as `data inspect` shows it without a scale
};

/// How the parts come to lie there.
struct SplitOutput {
    mode_t mode = 0600;                   // of each; output_mode() of the source
    Existing existing = Existing::kept;  // parts of an earlier split: replaced, all of them go
};

/// Writes FOLDER/part-1.csv.gz ... and, with a share held out, FOLDER/holdout.csv.gz; in that order in the result. All
/// are whole before the first takes its place; on failure nothing is left, nor the folder, where it was not there.
///
/// errors  those of divide(); invalid `folder_in_use`: the folder already holds parts, which would mix with these; io
[[nodiscard]] Result<std::vector<WrittenPart>> write_split(const Dataset& raw, const DividePlan& plan,
                                                           const std::filesystem::path& folder,
                                                           const SplitOutput& output = {});

}  // namespace causeway
