// Reading by a manifest. The data is read once when all is well; only for a wrong manifest its header is read again, so
// that every column that does not exist is named with its place and the nearest name in the file.
#include "configs/dataset_file.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/file.h"
#include "common/system_error.h"
#include "common/text.h"
#include "configs/manifest.h"
#include "data/columns.h"
#include "data/csv.h"
#include "data/partition.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

using Errors = std::vector<ConfigError>;

constexpr std::size_t most_names_listed = 1000;  // of a folder, to find the one that was meant

tl::unexpected<Error> bad_manifest(const Errors& errors) {
    return fail(ErrorKind::invalid, "bad_manifest", to_text(errors));
}

const Place& place_of_dataset(const Manifest& manifest, std::string_view key) {
    static const Place nowhere;
    const auto found = manifest.places.find(key);
    return found == manifest.places.end() ? nowhere : found->second;
}

std::string nearest_file(const fs::path& wanted) {
    std::vector<std::string> names;
    std::error_code code;
    for (fs::directory_iterator entry(wanted.parent_path(), code);
         !code && entry != fs::directory_iterator() && names.size() < most_names_listed; entry.increment(code)) {
        names.push_back(entry->path().filename().string());
    }
    const auto nearest = nearest_name(wanted.filename().string(), names);
    return nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : std::string();
}

/// The manifest's words cannot climb (configs/manifest.h); a link inside the folder must not do it either.
Result<fs::path> resolve(const fs::path& folder, const std::string& given) {
    const auto path = folder / given;
    std::error_code code;
    if (const auto there = check_there(path); !there && there.error().kind != ErrorKind::not_found) {
        return fail(there.error());
    }
    if (!fs::exists(path, code)) {
        return fail(ErrorKind::not_found, "no_such_file",
                    fmt::format("no such file or folder: {}{}", path.string(), nearest_file(path)));
    }
    const auto home = fs::canonical(folder, code);
    const auto real = code ? fs::path() : fs::canonical(path, code);
    const auto [end, ignored] = std::mismatch(home.begin(), home.end(), real.begin(), real.end());
    if (code || end != home.end()) {
        return fail(ErrorKind::invalid, "bad_manifest",
                    fmt::format("\"{}\" is a link that leads out of the manifest's folder; put the manifest beside the "
                                "data itself",
                                given));
    }
    return path;
}

/// A manifest with its files found.
struct OpenManifest {
    Manifest manifest;
    std::string text;
    fs::path file;
    fs::path test;  // empty: none
    Errors errors;
};

void resolve_files(const fs::path& path, OpenManifest& open) {
    const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    const auto find = [&](std::string_view key, const std::string& given, fs::path& target) {
        if (given.empty()) {
            return;
        }
        if (auto found = resolve(folder, given)) {
            target = *std::move(found);
        } else {
            open.errors.push_back(
                {place_of_dataset(open.manifest, key), fmt::format("{}: {}", key, found.error().message)});
        }
    };
    find("file", open.manifest.file, open.file);
    find("split.test", open.manifest.test, open.test);
}

Result<OpenManifest> open_manifest(const fs::path& path) {
    TRY_ASSIGN(const auto bytes, read_file(path, max_manifest_bytes));
    OpenManifest open;
    open.text = as_text(bytes);
    auto parsed = parse_manifest(open.text, path.string());
    open.manifest = std::move(parsed.manifest);
    open.errors = std::move(parsed.errors);
    resolve_files(path, open);
    return open;
}

/// The experiment's options with the manifest's words over them.
Result<DataOptions> merged(const OpenManifest& open, DataOptions options) {
    const auto& manifest = open.manifest;
    if (manifest.target && options.target == Target::number && *manifest.target != Target::number) {
        return bad_manifest({{place_of_dataset(manifest, "target"),
                              "target: the experiment's loss needs a number as label, and this one is a class"}});
    }
    options.target = manifest.target.value_or(options.target);
    options.file = manifest.choice;
    if (options.target == Target::number) {
        options.file.class_names.clear();
    }
    if (!manifest.label.empty()) {
        options.label = manifest.label;
    }
    if (!manifest.categories.empty()) {
        options.categories = manifest.categories;
    }
    options.missing = manifest.missing.value_or(options.missing);
    options.form = causeway::merged(options.form, manifest.form);
    return options;
}

/// Every wrong column of one text file; silent when its first line cannot be read, which reading has said already.
void find_column_faults(const OpenManifest& open, const fs::path& file, const DataOptions& options, Errors& errors) {
    const auto columns = file.empty() ? Result<CsvColumns>(CsvColumns{}) : csv_file_columns(file, options, {});
    if (!columns || file.empty()) {
        return;
    }
    const auto plan = plan_columns(options.label, open.manifest.choice.features, columns->names, columns->count,
                                   file.filename().string());
    if (plan) {
        return;
    }
    for (const auto& fault : plan.error()) {
        const auto& place =
            fault.feature ? open.manifest.feature_places[*fault.feature] : place_of_dataset(open.manifest, "label");
        errors.push_back({place, fmt::format("{}: {}", fault.feature ? "features" : "label", fault.error.message)});
    }
}

bool is_text_file(const OpenManifest& open, const fs::path& file) {
    std::error_code code;
    return fs::is_regular_file(file, code) &&
           (open.manifest.choice.reader == "csv" || file.string().find(".csv") != std::string::npos);
}

bool is_about_columns(const Error& error) {
    return error.code == "no_such_column" || error.code == "repeated_column" || error.code == "ambiguous_column";
}

/// All that is wrong with a manifest, in the order of its lines.
Error all_mistakes(OpenManifest& open, const DataOptions& options) {
    for (const auto& file : {open.file, open.test}) {
        if (is_text_file(open, file)) {
            find_column_faults(open, file, options, open.errors);
        }
    }
    open.errors = in_order(std::move(open.errors));
    return bad_manifest(open.errors).value();
}

Status hold_out(DatasetFile& file, double share, std::uint64_t seed) {
    TRY_ASSIGN(const auto parts, split_holdout(file.train, share, seed));
    file.test = subset(file.train, parts.held_out);
    file.train = subset(file.train, parts.train);
    return {};
}

Digest digest_of(const std::string& manifest, const DatasetFile& file) {
    Hasher hasher;
    hasher.update(std::string_view("causeway-manifest 1\n"));
    hasher.update(fmt::format("{}\n", manifest.size()));
    hasher.update(manifest);
    hasher.update(dataset_digest(file.train).hex());
    hasher.update(file.test ? dataset_digest(*file.test).hex() : "none");
    return hasher.finish();
}

Status read_test(const OpenManifest& open, const DataOptions& options, const ReadLimits& limits, DatasetFile& file) {
    TRY_ASSIGN(file.test, read_raw_dataset(open.test, options, limits));
    TRY(require_same_kind(file.train, *file.test));
    file.train.classes = std::max(file.train.classes, file.test->classes);
    file.test->classes = file.train.classes;
    return {};
}

Result<DatasetFile> read_by_manifest(const fs::path& path, const DataOptions& given, const ReadLimits& limits) {
    TRY_ASSIGN(auto open, open_manifest(path));
    TRY_ASSIGN(const auto options, merged(open, given));
    if (!open.errors.empty()) {
        return fail(all_mistakes(open, options));
    }
    DatasetFile file;
    const auto read = [&]() -> Status {
        TRY_ASSIGN(file.train, read_raw_dataset(open.file, options, limits));
        return open.test.empty() ? Status() : read_test(open, options, limits, file);
    }();
    if (!read) {
        auto error = is_about_columns(read.error()) ? all_mistakes(open, options) : Error{};
        return fail(open.errors.empty() ? with_context(read.error(), path.string()) : std::move(error));
    }
    if (open.manifest.holdout > 0) {
        TRY(hold_out(file, open.manifest.holdout, open.manifest.seed).map_error([&](Error error) {
            return with_context(std::move(error), place_of_dataset(open.manifest, "split.holdout").text());
        }));
    }
    file.digest = digest_of(open.text, file);
    return file;
}

}  // namespace

Result<Dataset> DatasetFile::whole() && {
    if (test) {
        TRY(append(train, *test));
    }
    return std::move(train);
}

bool is_manifest(const fs::path& path) {
    std::error_code code;
    return path.extension() == ".toml" && fs::is_regular_file(path, code);
}

Result<DatasetFile> read_dataset_file(const fs::path& path, const DataOptions& options, const ReadLimits& limits) {
    if (is_manifest(path)) {
        TRY_ASSIGN(auto file, read_by_manifest(path, options, limits));
        file.train.name = path.stem().string();
        return file;
    }
    DatasetFile file;
    TRY_ASSIGN(file.train, read_raw_dataset(path, options, limits));
    file.digest = dataset_digest(file.train);
    return file;
}

Status prepare_examples(DatasetFile& file, const DataOptions& options, std::uint64_t seed) {
    TRY(apply_options(file.train, options));
    if (file.test) {
        file.test->name = file.train.name;
        return apply_options(*file.test, options);
    }
    const auto held = std::llround(options.holdout * static_cast<double>(file.train.size()));
    const bool possible = held > 0 && held < static_cast<std::int64_t>(file.train.size());
    return possible ? hold_out(file, options.holdout, seed) : Status();
}

}  // namespace causeway
