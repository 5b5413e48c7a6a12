// The folders of images: names in order, files decoded one after another straight into the examples.
#include "data/images.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/file.h"
#include "common/text.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_image_file = 64 << 20;
constexpr std::size_t most_images = 2'000'000;  // of a dataset: a name of each is held while it is read

enum class ImageKind { none, png, jpeg };

ImageKind kind_of(const fs::path& path) {
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

Result<std::vector<std::string>> class_folders(const fs::path& path) {
    return names_in(path, max_classes, [](const fs::directory_entry& entry) {
        std::error_code code;
        return entry.is_directory(code) && !entry.path().filename().string().starts_with('.');
    });
}

class FolderReader {
public:
    FolderReader(const DataOptions& options, const ReadLimits& limits) : limits_(limits) {
        if (options.shape.size() == 3) {
            dataset_.shape = options.shape;
        }
    }

    Status add_class(const fs::path& folder, std::uint32_t label) {
        TRY_ASSIGN(const auto names, names_in(folder, most_images, [](const fs::directory_entry& entry) {
                       return kind_of(entry.path()) != ImageKind::none;
                   }));
        for (const auto& name : names) {
            auto added = add_image(folder / name);
            if (!added) {
                return fail(with_context(std::move(added).error(), (folder / name).string()));
            }
            dataset_.labels.push_back(label);
        }
        return {};
    }

    Dataset take() { return std::move(dataset_); }

private:
    Status add_image(const fs::path& path) {
        TRY_ASSIGN(const auto bytes, read_file(path, largest_image_file));
        const std::int64_t channels = dataset_.shape.empty() ? 0 : dataset_.shape[2];
        if (channels != 0 && channels != 1 && channels != 3) {
            return fail(
                ErrorKind::invalid, "shape_mismatch",
                fmt::format("images have 1 or 3 channels, the shape {} has {}", shape_text(dataset_.shape), channels));
        }
        TRY_ASSIGN(const Image image,
                   kind_of(path) == ImageKind::png ? decode_png(bytes, channels) : decode_jpeg(bytes, channels));
        if (dataset_.shape.empty()) {
            dataset_.shape = {image.height, image.width, image.channels};
        }
        if (image.height != dataset_.shape[0] || image.width != dataset_.shape[1]) {
            return fail(ErrorKind::corrupt, "image_size",
                        fmt::format("the image is {}x{}, the others {}x{}: bring all to one size", image.height,
                                    image.width, dataset_.shape[0], dataset_.shape[1]));
        }
        if (dataset_.features.size() + image.values.size() > limits_.values || dataset_.labels.size() >= most_images) {
            return fail(ErrorKind::overloaded, "too_large",
                        fmt::format("more than {} values or {} images", limits_.values, most_images));
        }
        dataset_.features.insert(dataset_.features.end(), image.values.begin(), image.values.end());
        return {};
    }

    const ReadLimits& limits_;
    Dataset dataset_{};
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
    TRY_ASSIGN(const auto folders, class_folders(path));
    const auto& classes = options.file.class_names.empty() ? folders : options.file.class_names;
    FolderReader reader(options, limits);
    for (const auto& folder : folders) {
        TRY_ASSIGN(const auto label, label_of(folder, classes));
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
