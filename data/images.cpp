// The folders of images: names in order, files decoded one after another straight into the examples.
#include "data/images.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/file.h"
#include "common/text.h"
#include "data/leftovers.h"
#include "data/names.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_image_file = 64 << 20;
constexpr std::size_t most_compared = 4096;     // folders whose names are compared but for case
constexpr std::size_t most_images = 2'000'000;  // of a dataset: a name of each is held while it is read

enum class ImageKind { none, png, jpeg };

ImageKind image_kind(const fs::path& path) {
    auto extension = path.extension().string();
    std::ranges::transform(extension, extension.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    return extension == ".png"                           ? ImageKind::png
           : extension == ".jpg" || extension == ".jpeg" ? ImageKind::jpeg
                                                         : ImageKind::none;
}

/// What a folder holds of one kind, by name: a file system lists in any order.
template <class Wanted>
Result<std::vector<std::string>> names_in(const fs::path& folder, std::size_t most, Wanted wanted) {
    std::vector<std::string> names;
    std::error_code code;
    fs::directory_iterator entry(folder, code);
    for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
        if (wanted(*entry)) {
            names.push_back(entry->path().filename().string());
        }
        if (names.size() > most) {
            return fail(ErrorKind::overloaded, "too_many_files",
                        fmt::format("{}: more than {} entries", folder.string(), most));
        }
    }
    if (code) {
        return fail(ErrorKind::io, "unreadable", fmt::format("{}: {}", folder.string(), code.message()));
    }
    std::ranges::sort(names);
    return names;
}

bool is_folder(const fs::path& path) {
    std::error_code code;
    return fs::is_directory(path, code);
}

/// Formats of images that are not read: leaving such a file out would leave out an example.
bool is_other_image(const fs::path& path) {
    constexpr std::array<std::string_view, 16> others{".tif", ".tiff", ".bmp",  ".gif",  ".webp", ".dcm",
                                                      ".jp2", ".j2k",  ".heic", ".heif", ".avif", ".ppm",
                                                      ".pgm", ".nii",  ".svg",  ".jxl"};
    const auto extension = path.extension().string();
    return std::ranges::any_of(others, [&](std::string_view other) { return same_but_case(extension, other); });
}

/// A folder for each class: those that hold an image. Names that a reader could not tell apart are refused.
Result<std::vector<std::string>> class_folders(const fs::path& path, const std::vector<std::string>& classes,
                                               SkippedEntries& skipped) {
    TRY_ASSIGN(const auto entries, names_in(path, most_images, [](const auto&) { return true; }));
    std::vector<std::string> folders;
    for (const auto& name : entries) {
        if (is_leftover(name) || !is_folder(path / name)) {
            skipped.add(name);
            continue;
        }
        TRY_ASSIGN(const auto images, names_in(path / name, most_images, [](const fs::directory_entry& entry) {
                       return !is_leftover(entry.path().filename().string()) &&
                              (image_kind(entry.path()) != ImageKind::none || is_other_image(entry.path()));
                   }));
        if (images.empty()) {
            skipped.add(name + "/");
            continue;
        }
        folders.push_back(name);
    }
    if (folders.size() > max_classes) {
        return fail(ErrorKind::overloaded, "too_many_files",
                    fmt::format("{}: more than {} entries", path.string(), max_classes));
    }
    std::ranges::sort(folders, {}, [](const auto& name) { return normal_name(name); });
    for (std::size_t i = 0; i < folders.size() && classes.empty(); ++i) {
        for (std::size_t other = i + 1; other < folders.size() && folders.size() < most_compared; ++other) {
            if (same_but_case(normal_name(folders[i]), normal_name(folders[other]))) {
                return fail(
                    ErrorKind::invalid, "ambiguous_name",
                    fmt::format("{}: the folders \"{}\" and \"{}\" would be two classes: make them one, or list "
                                "both in a manifest's classes",
                                path.string(), folders[i], folders[other]));
            }
        }
    }
    return folders;
}

class FolderReader {
public:
    FolderReader(const DataOptions& options, const ReadLimits& limits) : limits_(limits) {
        if (options.shape.size() == 3) {
            said_ = dataset_.shape = options.shape;
        }
    }

    Status add_class(const fs::path& folder, std::uint32_t label) {
        TRY_ASSIGN(const auto names, names_in(folder, most_images, [](const auto&) { return true; }));
        for (const auto& name : names) {
            if (is_leftover(name) || is_folder(folder / name)) {
                skipped_.add((folder.filename() / name).string());
                continue;
            }
            if (is_other_image(name)) {
                return fail(ErrorKind::unsupported, "image_kind",
                            fmt::format("{}: images of this format are not read: save it as PNG, or take it away",
                                        (folder / name).string()));
            }
            if (image_kind(name) == ImageKind::none) {
                skipped_.add((folder.filename() / name).string());
                continue;
            }
            auto added = add_image(folder / name);
            if (!added) {
                return fail(with_context(std::move(added).error(), (folder / name).string()));
            }
            dataset_.labels.push_back(label);
        }
        return {};
    }

    SkippedEntries& skipped() { return skipped_; }

    Dataset take() {
        dataset_.skipped = skipped_.count();
        const auto note = [&](std::string text) {
            if (!text.empty()) {
                dataset_.notes.push_back(std::move(text));
            }
        };
        note(skipped_.text());
        note(transparent_ == 0
                 ? ""
                 : fmt::format("{} images have transparent parts, which are read as stored", transparent_));
        note(turned_ == 0 ? ""
                          : fmt::format("{} images ask viewers to turn them (EXIF); they are read as stored", turned_));
        return std::move(dataset_);
    }

private:
    Status add_image(const fs::path& path) {
        TRY_ASSIGN(const auto bytes, read_file(path, largest_image_file));
        const std::int64_t channels = said_.empty() ? 0 : said_[2];
        if (channels != 0 && channels != 1 && channels != 3) {
            return fail(ErrorKind::invalid, "shape_mismatch",
                        fmt::format("images have 1 or 3 channels, the shape {} has {}", shape_text(said_), channels));
        }
        TRY_ASSIGN(const Image image,
                   image_kind(path) == ImageKind::png ? decode_png(bytes, channels) : decode_jpeg(bytes, channels));
        if (dataset_.shape.empty()) {
            dataset_.shape = {image.height, image.width, image.channels};
        }
        if (image.height != dataset_.shape[0] || image.width != dataset_.shape[1]) {
            return fail(ErrorKind::corrupt, "image_size",
                        fmt::format("the image is {}x{}, the others {}x{}: bring all to one size", image.height,
                                    image.width, dataset_.shape[0], dataset_.shape[1]));
        }
        if (image.channels != dataset_.shape[2]) {
            return fail(
                ErrorKind::invalid, "mixed_channels",
                fmt::format("the image has {} channels, the others {}: say what all become, shape = [{}, {}, 1] or "
                            "[{}, {}, 3]",
                            image.channels, dataset_.shape[2], image.height, image.width, image.height, image.width));
        }
        transparent_ += image.transparent ? 1 : 0;
        turned_ += image.turned ? 1 : 0;
        if (dataset_.features.size() + image.values.size() > limits_.values || dataset_.labels.size() >= most_images) {
            return fail(ErrorKind::overloaded, "too_large",
                        fmt::format("more than {} values or {} images", limits_.values, most_images));
        }
        dataset_.features.insert(dataset_.features.end(), image.values.begin(), image.values.end());
        return {};
    }

    const ReadLimits& limits_;
    std::vector<std::int64_t> said_;  // the options' shape; empty: none
    Dataset dataset_{};
    SkippedEntries skipped_;
    std::size_t transparent_ = 0;
    std::size_t turned_ = 0;
};

Result<std::uint32_t> label_of(const std::string& folder, const std::vector<std::string>& classes) {
    const auto found = std::ranges::find(classes, folder);
    if (found != classes.end()) {
        return static_cast<std::uint32_t>(found - classes.begin());
    }
    const auto nearest = nearest_name(folder, classes);
    return fail(ErrorKind::invalid, "bad_label",
                fmt::format("the folder \"{}\" is none of the classes {}{}", folder, join(classes, ", "),
                            nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : ""));
}

}  // namespace

Result<Dataset> read_image_folders(const fs::path& path, const DataOptions& options, const ReadLimits& limits) {
    if (!options.label.empty()) {
        return fail(
            ErrorKind::invalid, "bad_label",
            fmt::format("{}: images have the name of their folder as label; leave data.label out", path.string()));
    }
    FolderReader reader(options, limits);
    TRY_ASSIGN(const auto folders, class_folders(path, options.file.class_names, reader.skipped()));
    std::vector<std::string> classes = options.file.class_names;
    if (classes.empty()) {
        std::ranges::transform(folders, std::back_inserter(classes),
                               [](const auto& name) { return normal_name(name); });
    }
    for (const auto& folder : folders) {
        TRY_ASSIGN(const auto label, label_of(normal_name(folder), classes));
        TRY(reader.add_class(path / folder, label));
    }
    Dataset dataset = reader.take();
    if (dataset.labels.empty()) {
        return fail(ErrorKind::not_found, "no_dataset",
                    fmt::format("{} holds no folders of PNG or JPEG images, one for each class", path.string()));
    }
    dataset.reader = "images";
    dataset.classes = static_cast<std::uint32_t>(classes.size());
    dataset.class_names = classes;
    dataset.layout.label_column = dataset.example_size();
    return dataset;
}

namespace {

bool never_by_name(std::string_view) {
    return false;
}
bool never_by_content(ByteView) {
    return false;
}
Result<Dataset> refuse_file(const fs::path& path, ByteView, const DataOptions&, const ReadLimits&) {
    return fail(ErrorKind::invalid, "unknown_format",
                fmt::format("{}: images are read from a folder with a folder for each class", path.string()));
}

}  // namespace

extern const Reader images_reader;
const Reader images_reader{"images",      "a folder with a folder of PNG or JPEG images for each class",
                           never_by_name, never_by_content,
                           refuse_file,   read_image_folders};

}  // namespace causeway
