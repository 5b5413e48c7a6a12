// The NPY reader. The header is a Python dictionary; numpy writes it in one fixed form, and only that form is read.
//
// Types that hold no plain number are refused with a remedy. Arrays stored by columns are read in the order of rows.
// Integers of 64 bits and doubles are rounded once to f32, as training needs them.
#include "data/npy.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/text.h"
#include "data/binary.h"
#include "data/columns.h"
#include "data/partner.h"

namespace causeway {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t longest_header = 64 * 1024;  // numpy itself stops at 10,000
constexpr std::size_t highest_npy_rank = 8;

struct Header {
    ElementType type;
    std::vector<std::uint64_t> sizes;
    bool by_columns = false;
};

bool has_npy_magic(ByteView bytes) {
    return as_text(bytes).starts_with(magic);
}

tl::unexpected<Error> bad_header(std::string_view file, std::string_view what) {
    return fail(ErrorKind::corrupt, "bad_header", fmt::format("{}: the NPY header {}", file, what));
}

// The value of `'key': value`, up to the comma or bracket that ends it; a tuple with its brackets.
std::optional<std::string_view> field(std::string_view header, std::string_view key) {
    const auto at = header.find(fmt::format("'{}':", key));
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    auto value = trim(header.substr(at + key.size() + 3));
    const bool tuple = value.starts_with('(');
    const auto end = value.find_first_of(tuple ? ")" : ",}");
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    return trim(value.substr(0, end + (tuple ? 1 : 0)));
}

// "'<f4'": quotes, byte order, kind, bytes.
std::optional<ElementType> npy_element_type(std::string_view descr) {
    if (descr.size() != 5 || descr.front() != '\'' || descr.back() != '\'') {
        return std::nullopt;
    }
    const auto bytes = static_cast<std::size_t>(descr[3] - '0');
    const auto order = descr[1] == '>' ? ByteOrder::big : ByteOrder::little;
    const bool integer_size = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    if (std::string_view("<>|=").find(descr[1]) == std::string_view::npos || !integer_size) {
        return std::nullopt;
    }
    switch (descr[2]) {
        case 'u':
            return ElementType{ElementKind::unsigned_integer, bytes, order};
        case 'i':
            return ElementType{ElementKind::signed_integer, bytes, order};
        case 'b':
            return bytes == 1 ? std::optional(ElementType{ElementKind::unsigned_integer, 1, order}) : std::nullopt;
        case 'f':
            return bytes >= 2 ? std::optional(ElementType{ElementKind::real, bytes, order}) : std::nullopt;
        default:
            return std::nullopt;
    }
}

// "(10, 64)", "(10,)"
std::optional<std::vector<std::uint64_t>> parse_sizes(std::string_view tuple) {
    if (tuple.size() < 2 || tuple.front() != '(' || tuple.back() != ')') {
        return std::nullopt;
    }
    std::vector<std::uint64_t> sizes;
    for (const auto& word : split_text(tuple.substr(1, tuple.size() - 2), ',')) {
        const auto digits = trim(word);
        std::uint64_t size = 0;
        const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
        if (digits.empty() && !sizes.empty()) {
            continue;  // the comma after the last
        }
        if (code != std::errc() || end != digits.data() + digits.size() || sizes.size() == highest_npy_rank) {
            return std::nullopt;
        }
        sizes.push_back(size);
    }
    return sizes;
}

Result<Header> parse_header(std::string_view text, std::string_view file) {
    const auto descr = field(text, "descr");
    const auto order = field(text, "fortran_order");
    const auto shape = field(text, "shape");
    if (!descr || !order || !shape) {
        return bad_header(file, "must have descr, fortran_order and shape");
    }
    if (*order != "False" && *order != "True") {
        return bad_header(file, "must say True or False of fortran_order");
    }
    const auto type = npy_element_type(*descr);
    if (!type) {
        return fail(ErrorKind::unsupported, "element_type",
                    fmt::format("{}: values of this type cannot be read: save array.astype('float32')", file));
    }
    auto sizes = parse_sizes(*shape);
    if (!sizes) {
        return bad_header(file, fmt::format("must have a shape of at most {} whole numbers", highest_npy_rank));
    }
    return Header{*type, *std::move(sizes), *order == "True"};
}

Result<StoredArray> parse_npy(ByteView bytes, std::string_view file, const ReadLimits& limits) {
    if (!has_npy_magic(bytes)) {
        return fail(ErrorKind::corrupt, "bad_magic",
                    fmt::format("{}: not an NPY file: it must begin with 93 and NUMPY", file));
    }
    ByteReader reader(bytes.subspan(magic.size()));
    const auto truncated = [&](Error error) { return with_context(std::move(error), file); };
    TRY_ASSIGN(const auto major, reader.get<std::uint8_t>().map_error(truncated));
    TRY(reader.get<std::uint8_t>().map_error(truncated));
    if (major < 1 || major > 3) {
        return fail(ErrorKind::unsupported, "npy_version", fmt::format("{}: NPY version {} is not known", file, major));
    }
    std::size_t length = 0;
    if (major == 1) {
        TRY_ASSIGN(length, reader.get<std::uint16_t>().map_error(truncated));
    } else {
        TRY_ASSIGN(length, reader.get<std::uint32_t>().map_error(truncated));
    }
    if (length > longest_header) {
        return bad_header(file, fmt::format("is longer than {} bytes", longest_header));
    }
    TRY_ASSIGN(const auto text, reader.get_bytes(length).map_error(truncated));
    TRY_ASSIGN(auto header, parse_header(as_text(text), file));
    const auto values = bytes.last(reader.left());
    TRY_ASSIGN(auto array, make_stored_array(header.type, std::move(header.sizes), values, file, limits.values));
    array.by_columns = header.by_columns;
    return array;
}

// Where the features of a row are, and where its label, if it is a column.
struct NpyColumns {
    std::size_t width;  // of the stored row
    std::optional<std::size_t> label;
};

Result<NpyColumns> choose_columns(const StoredArray& array, std::string_view file, const DataOptions& options) {
    if (!options.label.empty() && array.sizes.size() != 2) {
        return fail(ErrorKind::invalid, "no_such_column",
                    fmt::format("{}: only an array of rank 2 has columns, this one has rank {}: leave out `label` to "
                                "take the labels beside it",
                                file, array.sizes.size()));
    }
    TRY_ASSIGN(const auto label, find_label_column(options.label, {}, array.width(), file));
    return NpyColumns{array.width(), label};
}

// The label is cut out of the row; the features on both sides of it close up.
Status append_npy_row(const StoredArray& array, std::size_t row, const NpyColumns& columns, std::string_view file,
                      Target target, Dataset& dataset) {
    const auto split = columns.label.value_or(columns.width);
    TRY(append_features(array, row, 0, split, file, dataset.features));
    if (columns.label) {
        TRY(append_features(array, row, split + 1, columns.width - split - 1, file, dataset.features));
        if (target == Target::number) {
            return append_features(array, row, split, 1, file, dataset.targets);
        }
        TRY_ASSIGN(const auto label, to_label(array[row * columns.width + split], Spot{file, row + 1, split + 1}));
        dataset.labels.push_back(label);
    }
    return {};
}

std::vector<std::int64_t> npy_example_shape(const StoredArray& array, const NpyColumns& columns) {
    if (columns.label || array.sizes.size() == 1) {
        return {static_cast<std::int64_t>(columns.width - (columns.label ? 1 : 0))};
    }
    return {array.sizes.begin() + 1, array.sizes.end()};
}

std::vector<std::string> npy_label_names(const std::string& name) {
    std::vector<std::string> names;
    if (auto partner = replaced(name, "features", "labels")) {
        names.push_back(*partner);
    }
    if (auto partner = replaced(name, ".npy", "-labels.npy")) {
        names.push_back(*partner);
    }
    return names;
}

bool owns_npy_name(std::string_view name) {
    return name.ends_with(".npy") || name.ends_with(".npy.gz");
}

Result<Dataset> read_npy(const std::filesystem::path& path, ByteView bytes, const DataOptions& options,
                         const ReadLimits& limits) {
    // A label column makes a labels file beside this one irrelevant, so it is not even read.
    const auto partner =
        options.label.empty() ? find_partner(path, npy_label_names(path.filename().string())) : std::nullopt;
    Bytes labels;
    if (partner) {
        TRY_ASSIGN(labels, read_unpacked(*partner, limits));
        if (labels.empty()) {
            return fail(ErrorKind::corrupt, "empty", fmt::format("{}: the file is empty", partner->string()));
        }
    }
    const auto labels_file = partner.value_or(std::filesystem::path{}).string();
    return parse_npy({bytes, path.string(), labels, labels_file}, options, limits);
}

}  // namespace

Result<Dataset> parse_npy(const NpyFiles& files, const DataOptions& options, const ReadLimits& limits) {
    TRY_ASSIGN(const auto array, parse_npy(files.features, files.features_file, limits));
    TRY_ASSIGN(const auto columns, choose_columns(array, files.features_file, options));
    Dataset dataset{std::string(files.features_file), {}, npy_example_shape(array, columns), {}, {}, 0, {}};
    dataset.features.reserve(array.examples() * dataset.example_size());
    for (std::size_t row = 0; row < array.examples(); ++row) {
        TRY(append_npy_row(array, row, columns, files.features_file, options.target, dataset));
    }
    if (!columns.label && !files.labels.empty()) {
        TRY_ASSIGN(const auto labels, parse_npy(files.labels, files.labels_file, limits));
        if (options.target == Target::number) {
            TRY_ASSIGN(dataset.targets, read_targets(labels, array.examples(), files.labels_file));
        } else {
            TRY_ASSIGN(dataset.labels, read_labels(labels, array.examples(), files.labels_file));
        }
    }
    dataset.classes = dataset.labels.empty() ? 0 : std::ranges::max(dataset.labels) + 1;
    const bool without = dataset.labels.empty() && dataset.targets.empty();
    dataset.layout.label_column = without ? 0 : columns.label.value_or(columns.width);
    return dataset;
}

extern const Reader npy_reader;
const Reader npy_reader{"npy", "NAME.npy (labels in a column, or NAME-labels.npy beside it)", owns_npy_name,
                        has_npy_magic, read_npy};

}  // namespace causeway
