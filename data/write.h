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
#include "data/dataset.h"
#include "data/partition.h"

namespace causeway {

/// The file's bytes. `raw` comes from read_raw_dataset (a scaled set would be scaled twice when read back).
[[nodiscard]] Bytes encode_part(const Dataset& raw);

/// errors  io. cost: the part as text in memory, 2 flushes
[[nodiscard]] Status write_part(const Dataset& raw, const std::filesystem::path& path);

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

/// Writes FOLDER/part-1.csv.gz ... and, with a share held out, FOLDER/holdout.csv.gz; in that order in the result.
///
/// errors  those of divide(); refused `folder_in_use`: the folder already holds parts, which would mix with these; io
[[nodiscard]] Result<std::vector<WrittenPart>> write_split(const Dataset& raw, const DividePlan& plan,
                                                           const std::filesystem::path& folder);

}  // namespace causeway
