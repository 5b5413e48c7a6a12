// The IDX reader. One parser serves images and labels: they differ in rank only.
//
// The header's sizes must account for every byte of the file; a file cut short by a broken download is told apart
// from one with bytes too many.
#include "data/idx.h"

#include <algorithm>

#include <fmt/format.h>

#include "data/binary.h"
#include "data/partner.h"

namespace causeway {
namespace {

constexpr std::size_t magic_bytes = 4;
constexpr unsigned highest_idx_rank = 8;

std::optional<ElementType> idx_element_type(unsigned code) {
    switch (code) {
        case 0x08:
            return ElementType{ElementKind::unsigned_integer, 1, ByteOrder::big};
        case 0x09:
            return ElementType{ElementKind::signed_integer, 1, ByteOrder::big};
        case 0x0B:
            return ElementType{ElementKind::signed_integer, 2, ByteOrder::big};
        case 0x0C:
            return ElementType{ElementKind::signed_integer, 4, ByteOrder::big};
        case 0x0D:
            return ElementType{ElementKind::real, 4, ByteOrder::big};
        case 0x0E:
            return ElementType{ElementKind::real, 8, ByteOrder::big};
        default:
            return std::nullopt;
    }
}

// Four bytes are little to go by; for files without a telling name the type and the rank must make sense as well.
bool has_idx_magic(ByteView bytes) {
    return bytes.size() >= magic_bytes && bytes[0] == std::byte{0} && bytes[1] == std::byte{0} &&
           idx_element_type(std::to_integer<unsigned>(bytes[2])) && bytes[3] != std::byte{0} &&
           std::to_integer<unsigned>(bytes[3]) <= highest_idx_rank;
}

std::uint32_t big_endian_u32(ByteView bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
    }
    return value;
}

Result<StoredArray> parse_idx(ByteView bytes, std::string_view file, const ReadLimits& limits) {
    if (!has_idx_magic(bytes)) {
        return fail(ErrorKind::corrupt, "bad_magic",
                    fmt::format("{}: not an IDX file: it must begin with 00 00, a type (08 to 0E) and a rank", file));
    }
    const auto rank = std::to_integer<std::size_t>(bytes[3]);
    const auto header = magic_bytes + 4 * rank;
    if (bytes.size() < header) {
        return fail(ErrorKind::corrupt, "truncated", fmt::format("{}: the file ends inside its header", file));
    }
    std::vector<std::uint64_t> sizes;
    for (std::size_t i = 0; i < rank; ++i) {
        sizes.push_back(big_endian_u32(bytes.subspan(magic_bytes + 4 * i)));
    }
    return make_stored_array(*idx_element_type(std::to_integer<unsigned>(bytes[2])), std::move(sizes),
                             bytes.subspan(header), file, limits.values);
}

// A file of rank 1 holds one value an example.
std::vector<std::int64_t> idx_example_shape(const StoredArray& array) {
    std::vector<std::int64_t> shape(array.sizes.begin() + 1, array.sizes.end());
    return shape.empty() ? std::vector<std::int64_t>{1} : shape;
}

// "train-images-idx3-ubyte.gz" -> "train-labels-idx1-ubyte.gz".
std::vector<std::string> idx_label_names(const std::string& images) {
    const auto named = replaced(images, "images", "labels");
    if (!named) {
        return {};
    }
    std::vector<std::string> names;
    for (unsigned rank = 1; rank <= highest_idx_rank; ++rank) {
        if (auto name = replaced(*named, fmt::format("idx{}", rank), "idx1")) {
            names.push_back(*name);
        }
    }
    names.push_back(*named);
    return names;
}

// "t10k-images-idx3-ubyte", as MNIST and its relatives are called, or NAME.idx.
bool owns_idx_name(std::string_view name) {
    for (unsigned rank = 1; rank <= highest_idx_rank; ++rank) {
        if (name.find(fmt::format("idx{}-", rank)) != std::string_view::npos) {
            return true;
        }
    }
    return name.ends_with(".idx") || name.ends_with(".idx.gz");
}

Result<Dataset> read_idx(const std::filesystem::path& path, ByteView bytes, const DataOptions& options,
                         const ReadLimits& limits) {
    const auto names = idx_label_names(path.filename().string());
    const auto partner = find_partner(path, names);
    if (!partner) {
        return fail(ErrorKind::not_found, "no_labels",
                    names.empty() ? fmt::format("{}: name the file of images (\"images\" in its name), with its labels "
                                                "beside it (\"labels\" instead)",
                                                path.string())
                                  : fmt::format("{}: its labels are missing: expected {} beside it", path.string(),
                                                names.front()));
    }
    TRY_ASSIGN(const Bytes labels, read_unpacked(*partner, limits));
    return parse_idx({bytes, path.string(), labels, partner->string()}, options, limits);
}

}  // namespace

Result<Dataset> parse_idx(const IdxFiles& files, const DataOptions& options, const ReadLimits& limits) {
    if (!options.label.empty()) {
        return fail(ErrorKind::invalid, "no_such_column",
                    fmt::format("{}: IDX files have no column '{}': leave out `label` to take the labels beside them",
                                files.images_file, options.label));
    }
    TRY_ASSIGN(const auto images, parse_idx(files.images, files.images_file, limits));
    TRY_ASSIGN(const auto label_array, parse_idx(files.labels, files.labels_file, limits));
    Dataset dataset{std::string(files.images_file), {}, idx_example_shape(images), {}, {}, 0, {}};
    if (options.target == Target::number) {
        TRY_ASSIGN(dataset.targets, read_targets(label_array, images.examples(), files.labels_file));
    } else {
        TRY_ASSIGN(dataset.labels, read_labels(label_array, images.examples(), files.labels_file));
    }
    dataset.features.reserve(images.examples() * images.width());
    for (std::size_t row = 0; row < images.examples(); ++row) {
        TRY(append_features(images, row, 0, images.width(), files.images_file, dataset.features));
    }
    dataset.classes = dataset.labels.empty() ? 0 : std::ranges::max(dataset.labels) + 1;
    dataset.layout.label_column = images.width();  // a written part has the label last
    return dataset;
}

extern const Reader idx_reader;
const Reader idx_reader{"idx", "NAME-images-idx3-ubyte with NAME-labels-idx1-ubyte beside it (or .gz)", owns_idx_name,
                        has_idx_magic, read_idx};

}  // namespace causeway
