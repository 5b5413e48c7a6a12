// Finds the format of a file or folder, and applies shape and scale to what the format's reader made of it.
#include "data/reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "common/file.h"
#include "common/system_error.h"
#include "common/text.h"
#include "data/gzip.h"
#include "data/leftovers.h"

namespace causeway {

// A format is one file and one line here (and its name in this declaration).
extern const Reader csv_reader, idx_reader, npy_reader, images_reader;

namespace {

namespace fs = std::filesystem;

constexpr std::array<const Reader*, 4> all_readers{
    &idx_reader, &npy_reader, &images_reader,
    &csv_reader,  // last: any text could be CSV
};

constexpr std::size_t most_files = 10'000;  // of a folder
constexpr std::string_view part_prefix = "part-";
constexpr std::string_view part_suffix = ".csv.gz";

const Reader* reader_by_name(std::string_view file_name) {
    const auto owns = [&](const Reader* reader) { return reader->owns_name(file_name); };
    const auto found = std::ranges::find_if(all_readers, owns);
    return found == all_readers.end() ? nullptr : *found;
}

// A name is a promise: damaged.npy is reported as a damaged NPY file, never guessed to be CSV.
const Reader* reader_for(std::string_view file_name, ByteView bytes) {
    if (const auto* reader = reader_by_name(file_name)) {
        return reader;
    }
    for (const auto* reader : all_readers) {
        if (reader->owns_content(bytes)) {
            return reader;
        }
    }
    return nullptr;
}

const Reader* reader_named(std::string_view name) {
    const auto found = std::ranges::find(all_readers, name, &Reader::name);
    return found == all_readers.end() ? nullptr : *found;
}

/// Names fix how many classes there are, also those that this file lacks.
Status name_classes(Dataset& dataset, const std::vector<std::string>& names) {
    if (names.empty() || !dataset.labelled()) {
        return {};
    }
    TRY(require_labels_below(dataset, static_cast<std::uint32_t>(names.size())));
    dataset.classes = static_cast<std::uint32_t>(names.size());
    dataset.class_names = names;
    return {};
}

std::string known_formats() {
    std::vector<std::string> names;
    for (const auto* reader : all_readers) {
        names.emplace_back(reader->examples);
    }
    return join(names, "; ");
}

Result<Dataset> read_one(const fs::path& path, const DataOptions& options, const ReadLimits& limits) {
    const auto* known = options.file.reader.empty() ? reader_by_name(path.filename().string())
                                                    : reader_named(options.file.reader);
    if (known != nullptr && known->read_stream != nullptr) {
        TRY_ASSIGN(Dataset dataset, known->read_stream(path, options, limits));
        dataset.reader = known->name;
        TRY(name_classes(dataset, options.file.class_names));
        return dataset;
    }
    TRY_ASSIGN(const Bytes bytes, read_unpacked(path, limits));
    if (bytes.empty()) {
        return fail(ErrorKind::corrupt, "empty", fmt::format("{}: the file is empty", path.string()));
    }
    const auto* reader = known != nullptr ? known : reader_for(path.filename().string(), bytes);
    if (reader == nullptr) {
        return fail(ErrorKind::unsupported, "unknown_format",
                    fmt::format("{} is of no known format. Known: {}", path.string(), known_formats()));
    }
    TRY_ASSIGN(Dataset dataset, reader->read(path, bytes, options, limits));
    dataset.reader = reader->name;
    TRY(name_classes(dataset, options.file.class_names));
    return dataset;
}

// ---- folders

Result<std::vector<std::string>> list_files(const fs::path& folder, SkippedEntries& skipped) {
    std::vector<std::string> names;
    std::error_code code;
    fs::directory_iterator entry(folder, code);
    for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
        if (names.size() >= most_files) {
            return fail(ErrorKind::overloaded, "too_many_files",
                        fmt::format("{}: more than {} files", folder.string(), most_files));
        }
        auto name = entry->path().filename().string();
        if (is_leftover(name)) {
            skipped.add(name);
        } else {
            names.push_back(std::move(name));
        }
    }
    if (code) {
        return fail(ErrorKind::io, "unreadable", fmt::format("{}: {}", folder.string(), code.message()));
    }
    std::ranges::sort(names);  // a folder lists its files in any order
    return names;
}

// 7 for "part-7.csv.gz", 0 for any other name.
std::uint32_t part_number(std::string_view name) {
    if (!name.starts_with(part_prefix) || !name.ends_with(part_suffix) ||
        name.size() <= part_prefix.size() + part_suffix.size()) {
        return 0;
    }
    const auto digits = name.substr(part_prefix.size(), name.size() - part_prefix.size() - part_suffix.size());
    std::uint32_t number = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return code == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

std::vector<std::string> parts_in_order(const std::vector<std::string>& names) {
    std::vector<std::string> parts;
    std::ranges::copy_if(names, std::back_inserter(parts), [](const auto& name) { return part_number(name) > 0; });
    std::ranges::sort(parts, {}, [](const auto& name) { return part_number(name); });
    return parts;
}

// The files that are a dataset by their name, their label files left out.
std::vector<std::string> datasets_in(const std::vector<std::string>& names) {
    std::vector<std::string> found;
    std::ranges::copy_if(names, std::back_inserter(found), [](const std::string& name) {
        const bool owned = std::ranges::any_of(all_readers, [&](const auto* r) { return r->owns_name(name); });
        return owned && name.find("labels") == std::string::npos;
    });
    return found;
}

Status append_within(Dataset& whole, const Dataset& part, const ReadLimits& limits) {
    if (whole.features.size() + part.features.size() > limits.values) {
        return fail(ErrorKind::overloaded, "too_large",
                    fmt::format("{}: the parts together have more than {} values", part.name, limits.values));
    }
    return append(whole, part);
}

Result<Dataset> read_parts(const fs::path& folder, const std::vector<std::string>& names, const DataOptions& options,
                           const ReadLimits& limits) {
    TRY_ASSIGN(Dataset whole, read_one(folder / names.front(), options, limits));
    for (std::size_t i = 1; i < names.size(); ++i) {
        TRY_ASSIGN(const Dataset part, read_one(folder / names[i], options, limits));
        TRY(append_within(whole, part, limits));
    }
    return whole;
}

bool holds_folders(const fs::path& folder, const std::vector<std::string>& names) {
    std::error_code code;
    return std::ranges::any_of(names, [&](const auto& name) { return fs::is_directory(folder / name, code); });
}

Result<Dataset> read_folder(const fs::path& folder, const DataOptions& options, const ReadLimits& limits) {
    if (const auto* reader = reader_named(options.file.reader); reader != nullptr && reader->read_folder != nullptr) {
        return reader->read_folder(folder, options, limits);
    }
    SkippedEntries skipped;
    TRY_ASSIGN(const auto names, list_files(folder, skipped));
    const auto with_skipped = [&](Result<Dataset> dataset) {
        if (dataset && skipped.count() > 0) {
            dataset->skipped = skipped.count();
            dataset->notes.push_back(skipped.text());
        }
        return dataset;
    };
    // Parts first, in the order of their numbers: 2 comes before 10, and holdout.csv.gz is left for evaluation.
    if (const auto parts = parts_in_order(names); !parts.empty()) {
        return with_skipped(read_parts(folder, parts, options, limits));
    }
    const auto found = datasets_in(names);
    if (found.empty() && holds_folders(folder, names)) {
        return images_reader.read_folder(folder, options, limits);
    }
    if (found.empty()) {
        return fail(ErrorKind::not_found, "no_dataset",
                    fmt::format("{} holds no dataset. Known formats: {}", folder.string(), known_formats()));
    }
    if (found.size() > 1) {
        return fail(
            ErrorKind::invalid, "several_datasets",
            fmt::format("{} holds several datasets ({}, {}, ...): name the file", folder.string(), found[0], found[1]));
    }
    return with_skipped(read_one(folder / found.front(), options, limits));
}

// "digits" for digits.csv.gz and for the folder digits/.
std::string dataset_name(const fs::path& path) {
    auto name = (path.has_filename() ? path : path.parent_path()).filename().string();
    return name.substr(0, name.find('.', 1));
}

}  // namespace

std::span<const Reader* const> readers() {
    return all_readers;
}

Result<Bytes> read_unpacked(const fs::path& path, const ReadLimits& limits) {
    TRY_ASSIGN(Bytes bytes, read_file(path, limits.file_bytes));
    if (!is_gzip(bytes)) {
        return bytes;
    }
    return gunzip(bytes, limits.inflated_bytes).map_error([&](Error error) {
        return with_context(std::move(error), path.string());
    });
}

Result<Dataset> read_raw_dataset(const fs::path& path, const DataOptions& options, const ReadLimits& limits) {
    if (const auto errors = check_data_options(options); !errors.empty()) {
        return fail(errors.front());
    }
    std::error_code code;
    const auto status = fs::status(path, code);
    TRY(check_there(path));
    TRY_ASSIGN(Dataset dataset,
               fs::is_directory(status) ? read_folder(path, options, limits) : read_one(path, options, limits));
    dataset.name = dataset_name(path);
    if (!options.shape.empty()) {
        TRY(reshape(dataset, options.shape));
    }
    return dataset;
}

Result<Dataset> read_dataset(const fs::path& path, const DataOptions& options, const ReadLimits& limits) {
    TRY_ASSIGN(Dataset dataset, read_raw_dataset(path, options, limits));
    TRY(apply_options(dataset, options));
    return dataset;
}

Status apply_options(Dataset& dataset, const DataOptions& options) {
    if (!options.shape.empty()) {
        TRY(reshape(dataset, options.shape));
    }
    if (options.scale) {
        TRY(apply_scale(dataset, *options.scale));
    }
    if (auto fault = augment_fault(options.augment, dataset.shape); !fault.empty()) {
        return fail(ErrorKind::invalid, "augment", std::move(fault));
    }
    normalise(options.augment, dataset.shape.back(), dataset.features);
    if (std::ranges::any_of(dataset.features, [](float value) { return !std::isfinite(value); })) {
        return fail(ErrorKind::invalid, "scale_overflow",
                    fmt::format("'{}': a normalised value is not a finite number", dataset.name));
    }
    return {};
}

}  // namespace causeway
