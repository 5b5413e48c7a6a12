// The door for datasets: a path and options in, a dataset or a refusal that names file, row and column out.
//
// Each format is one file that defines a Reader, and one line in reader.cpp. Files are hostile: what they declare is
// checked against what is there before memory is taken, and every size has a limit.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "common/bytes.h"
#include "data/data_options.h"
#include "data/dataset.h"

namespace causeway {

struct ReadLimits {
    std::uint64_t file_bytes = std::uint64_t{2} << 30;      // of one file on disk
    std::uint64_t inflated_bytes = std::uint64_t{2} << 30;  // of one file after gunzip
    std::uint64_t values = std::uint64_t{1} << 29;          // features of a dataset: 2 GiB as f32
    std::uint64_t columns = 1 << 20;                        // of one row of a text file
    std::uint64_t text_bytes = std::uint64_t{1} << 40;      // of a table, which is read a block at a time
};

/// One format. All functions are reentrant; names are file names without the folder.
struct Reader {
    std::string_view name;      // "csv"
    std::string_view examples;  // for people: what such files are called
    /// Whether a file of this name is of this format, whatever it holds: a wrong content is then refused by name.
    bool (*owns_name)(std::string_view file_name);
    /// Whether these bytes (gunzipped) look like the format; asked only when no reader owns the name.
    bool (*owns_content)(ByteView bytes);
    /// Reads the file at `path`, whose bytes (gunzipped) are given, and its partners. Leaves shape and scale alone.
    Result<Dataset> (*read)(const std::filesystem::path& path, ByteView bytes, const DataOptions& options,
                            const ReadLimits& limits);
    /// Of a format that is a folder of files: reads all of it. nullptr for the others.
    Result<Dataset> (*read_folder)(const std::filesystem::path& path, const DataOptions& options,
                                   const ReadLimits& limits) = nullptr;
    /// Of a format that is read a block at a time, gunzipped or not. nullptr for the others.
    Result<Dataset> (*read_stream)(const std::filesystem::path& path, const DataOptions& options,
                                   const ReadLimits& limits) = nullptr;
};

/// Every format, in the order in which they are asked.
[[nodiscard]] std::span<const Reader* const> readers();

/// Reads a file, or a folder that holds one dataset: IDX images with their labels, features.npy with its labels, one
/// CSV file, a folder of images for each class, or the parts that `data split` wrote (part-1, part-2, ... joined;
/// holdout is never one of them).
///
/// errors  not_found: no such path, or no labels beside the images; corrupt: truncated, ragged, not numeric, not
///         finite, wrong magic; invalid: options that do not fit, label out of range; overloaded: a limit
/// cost    the dataset in memory, and the whole file where it is no table
[[nodiscard]] Result<Dataset> read_dataset(const std::filesystem::path& path, const DataOptions& options,
                                           const ReadLimits& limits = {});

/// The same with the values as stored: the scale is not applied. What `data split` hands on.
[[nodiscard]] Result<Dataset> read_raw_dataset(const std::filesystem::path& path, const DataOptions& options,
                                               const ReadLimits& limits = {});

/// Gives a dataset as stored the shape and scale of the options: what read_dataset does after reading.
///
/// errors  invalid: the shape or the scale does not fit
[[nodiscard]] Status apply_options(Dataset& dataset, const DataOptions& options);
/// The file's bytes, gunzipped when they are gzip. errors: not_found, io, overloaded, corrupt
[[nodiscard]] Result<Bytes> read_unpacked(const std::filesystem::path& path, const ReadLimits& limits);

}  // namespace causeway
