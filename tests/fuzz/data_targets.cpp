// What a person hands to a node or a coordinator as data: every reader, unpacked and packed, and the texts of options.
// The first byte of an input chooses the options, so that a search finds its way to labels, shapes and scales.
// Thread: one.
#include "data/csv.h"
#include "data/gzip.h"
#include "data/idx.h"
#include "data/images.h"
#include "data/npy.h"
#include "data/npz.h"
#include "data/partition.h"
#include "tests/data/image_files.h"
#include "tests/data/samples.h"
#include "tests/fuzz/targets.h"

namespace causeway {
namespace {

constexpr ReadLimits limits{.file_bytes = 1 << 20, .inflated_bytes = 1 << 20, .values = 1 << 18, .columns = 1 << 12};

DataOptions options_of(std::byte chosen) {
    const auto bits = std::to_integer<unsigned>(chosen);
    DataOptions options;
    options.label = (bits & 1) != 0 ? "last" : (bits & 2) != 0 ? "0" : "";
    if ((bits & 4) != 0) {
        options.shape = {2, 1};
    }
    if ((bits & 16) != 0) {
        options.categories = {{"1", {"f", "m", "0"}}};
        options.missing = *parse_missing((bits & 32) != 0 ? "drop" : "2");
    }
    if ((bits & 8) != 0) {
        options.scale = *parse_scale("0..16 -> 0..1");
    }
    return options;
}

void require_sound(const Result<Dataset>& dataset) {
    require_named(dataset);
    REQUIRE_FUZZ(!dataset || is_sound(*dataset));
}

Bytes chosen(unsigned options, ByteView bytes) {
    Bytes input{static_cast<std::byte>(options)};
    input.insert(input.end(), bytes.begin(), bytes.end());
    return input;
}

/// Two files in one input: u16 length of the first.
struct TwoFiles {
    ByteView first;
    ByteView second;
};
TwoFiles split(ByteView input) {
    if (input.size() < 2) {
        return {};
    }
    const auto wanted = std::to_integer<std::size_t>(input[0]) + 256 * std::to_integer<std::size_t>(input[1]);
    const auto first = std::min(wanted, input.size() - 2);
    return {input.subspan(2, first), input.subspan(2 + first)};
}
Bytes joined(unsigned options, ByteView first, ByteView second) {
    ByteWriter out;
    out.put(static_cast<std::uint8_t>(options));
    out.put(static_cast<std::uint16_t>(first.size()));
    out.put_bytes(first);
    out.put_bytes(second);
    return out.take();
}

void run_csv(ByteView input) {
    if (!input.empty()) {
        require_sound(parse_csv(input.subspan(1), "set.csv", options_of(input.front()), limits));
    }
}
std::vector<Bytes> csv_seeds() {
    return {chosen(0, as_bytes("# causeway label=2 classes=3 shape=2x1\n1,2.5,0\n-3,4e2,2\n")),
            chosen(1, as_bytes("\"a,b\",c,last\r\n1,2,0\r\n3,4,1\r\n")), chosen(13, as_bytes("1,2,0\n16,nan,1\n")),
            chosen(17, as_bytes("a,b,c\n1,f,0\n,m,1\n")), chosen(49, as_bytes("1,f,0\nNA,m,1\n2,f,?\n"))};
}

void run_idx(ByteView input) {
    if (!input.empty()) {
        const auto files = split(input.subspan(1));
        require_sound(parse_idx({files.first, "images", files.second, "labels"}, options_of(input.front()), limits));
    }
}
std::vector<Bytes> idx_seeds() {
    const auto images = idx_bytes(0x08, {3, 2, 2}, byte_values(12, 256));
    return {joined(0, images, idx_bytes(0x08, {3}, byte_values(3, 3))),
            joined(0, idx_bytes(0x0d, {1, 2}, byte_values(8, 64)), {})};
}

void run_npy(ByteView input) {
    if (!input.empty()) {
        const auto files = split(input.subspan(1));
        require_sound(parse_npy({files.first, "features", files.second, "labels"}, options_of(input.front()), limits));
    }
}
std::vector<Bytes> npy_seeds() {
    const auto features = npy_array<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6});
    return {joined(0, features, npy_array<std::int64_t>("<i8", "(2,)", {0, 1})), joined(1, features, {}),
            joined(0, npy_array<double>("<f8", "(2,)", {1, 2}), {})};
}

void run_gzip(ByteView input) {
    const auto bytes = gunzip(input, limits.inflated_bytes);
    require_named(bytes);
    REQUIRE_FUZZ(!bytes || bytes->size() <= limits.inflated_bytes);
    (void)is_gzip(input);
}
std::vector<Bytes> gzip_seeds() {
    return {gzip(as_bytes("1,2,0\n3,4,1\n5,6,0\n")), gzip(Bytes(1 << 16))};
}

/// Written from any names and shapes that hold together; what is refused is named.
void run_npz(ByteView input) {
    const auto files = split(input);
    std::vector<float> values(files.second.size());
    const NamedArray array{std::string(as_text(files.first)), {static_cast<std::int64_t>(values.size())}, values};
    require_named(encode_npz({&array, 1}));
}
std::vector<Bytes> npz_seeds() {
    return {joined(5, as_bytes("dense1.weight"), as_bytes("12345678"))};
}

template <class T>
void require_fixed_point(const Result<T>& value, const std::string& text, Result<T> (*parse)(std::string_view)) {
    const auto again = parse(text);
    REQUIRE_FUZZ(again.has_value() && *again == *value);
}

void run_data_options(ByteView input) {
    const auto options = parse_data_options(as_text(input));
    require_named(options);
    if (options && check_data_options(*options).empty()) {
        require_fixed_point(options, to_text(*options), parse_data_options);
    }
    require_named(parse_scale(as_text(input)));
    require_named(parse_shape(as_text(input)));
    require_named(parse_partition(as_text(input)));
}
std::vector<Bytes> data_options_seeds() {
    return {to_bytes("label=last shape=8x8x1 scale=0..16->0..1"), to_bytes("label=a%20b shape=3"),
            to_bytes("categories=a:x,y;b:%2C missing=drop shape=4x4x1 augment=crop%202,flip"),
            to_bytes("dirichlet alpha=0.5"), to_bytes("shards per_node=2")};
}

void run_image(ByteView input, Result<Image> (*decode)(ByteView, std::int64_t)) {
    constexpr std::int64_t channels[] = {0, 1, 3};
    if (input.empty()) {
        return;
    }
    const auto image = decode(input.subspan(1), channels[std::to_integer<unsigned>(input.front()) % 3]);
    require_named(image);
    REQUIRE_FUZZ(!image || (image->channels == 1 || image->channels == 3));
    REQUIRE_FUZZ(!image || image->values.size() ==
                               static_cast<std::size_t>(image->height * image->width * image->channels));
}
void run_png(ByteView input) {
    run_image(input, decode_png);
}
void run_jpeg(ByteView input) {
    run_image(input, decode_jpeg);
}
std::vector<Bytes> png_seeds() {
    return {chosen(0, png_bytes(gradient_image(9, 7, 3))), chosen(2, png_bytes(gradient_image(4, 5, 1))),
            chosen(0, png_bytes(gradient_image(3, 3, 4)))};
}
std::vector<Bytes> jpeg_seeds() {
    return {chosen(0, jpeg_bytes(gradient_image(9, 17, 3))), chosen(1, jpeg_bytes(gradient_image(8, 8, 3), true)),
            chosen(0, jpeg_bytes(gradient_image(4, 5, 1)))};
}

constexpr FuzzTarget data_targets_table[] = {
    {"png", run_png, png_seeds, 2000},    {"jpeg", run_jpeg, jpeg_seeds, 2000},
    {"csv", run_csv, csv_seeds, 5000},    {"idx", run_idx, idx_seeds, 5000},
    {"npy", run_npy, npy_seeds, 5000},    {"npz", run_npz, npz_seeds, 1000},
    {"gzip", run_gzip, gzip_seeds, 2000}, {"data_options", run_data_options, data_options_seeds, 5000}};

}  // namespace

std::span<const FuzzTarget> data_targets() {
    return data_targets_table;
}

}  // namespace causeway
