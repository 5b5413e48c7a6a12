// Decoding of stored values, and the one place where a declared shape meets the bytes that are there.
//
// Values are decoded one at a time from the file's bytes: there is no second copy of a dataset in its stored type,
// and no assumption about alignment. Sizes come from hostile headers, so products are checked before they are made.
#include "data/binary.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/half.h"

namespace causeway {
namespace {

std::uint64_t load(const std::byte* bytes, const ElementType& type) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < type.bytes; ++i) {
        const auto at = type.order == ByteOrder::big ? i : type.bytes - 1 - i;
        value = value << 8 | static_cast<std::uint64_t>(bytes[at]);
    }
    return value;
}

double to_real(std::uint64_t bits, std::size_t bytes) {
    if (bytes == 2) {
        return static_cast<double>(float_of_half(static_cast<std::uint16_t>(bits)));
    }
    return bytes == 4 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                      : std::bit_cast<double>(bits);
}

// Shifted up and back: the sign bit of a short value fills the upper bits.
double to_signed(std::uint64_t bits, std::size_t bytes) {
    const auto unused = static_cast<int>(64 - 8 * bytes);
    return static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
}

// 0 when there is none that fits: sizes are at most 2^64, so each product is checked before it is made.
std::uint64_t checked_product(const std::vector<std::uint64_t>& sizes) {
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    std::uint64_t product = 1;
    for (const auto size : sizes) {
        if (size == 0 || product > most / size) {
            return 0;
        }
        product *= size;
    }
    return sizes.empty() ? 0 : product;
}

}  // namespace

namespace {

/// Where an element lies that has this place in row-major order.
std::size_t place_by_columns(std::size_t index, const std::vector<std::uint64_t>& sizes, std::size_t count) {
    std::size_t place = 0;
    for (std::size_t stride = count, at = sizes.size(); at > 0; --at) {
        const auto size = static_cast<std::size_t>(sizes[at - 1]);
        stride /= size;
        place += index % size * stride;
        index /= size;
    }
    return place;
}

}  // namespace

double StoredArray::operator[](std::size_t index) const {
    if (by_columns) {
        index = place_by_columns(index, sizes, bytes.size() / type.bytes);
    }
    const auto bits = load(bytes.data() + index * type.bytes, type);
    switch (type.kind) {
        case ElementKind::unsigned_integer:
            return static_cast<double>(bits);
        case ElementKind::signed_integer:
            return to_signed(bits, type.bytes);
        case ElementKind::real:
            return to_real(bits, type.bytes);
    }
    return 0;
}

Result<StoredArray> make_stored_array(ElementType type, std::vector<std::uint64_t> sizes, ByteView bytes,
                                      std::string_view file, std::uint64_t most_values) {
    const auto count = checked_product(sizes);
    const auto declared =
        fmt::format("{}: the header declares {} values of {} bytes", file, fmt::join(sizes, "x"), type.bytes);
    if (count == 0) {
        return fail(ErrorKind::corrupt, "bad_size", declared + ": no array has this size");
    }
    if (count > most_values) {
        return fail(ErrorKind::overloaded, "too_large", fmt::format("{}, the limit is {}", declared, most_values));
    }
    // The limit on values keeps this product small.
    if (bytes.size() != count * type.bytes) {
        const bool less = bytes.size() < count * type.bytes;
        const auto row = bytes.size() / (count / sizes.front() * type.bytes) + 1;
        return fail(ErrorKind::corrupt, less ? "truncated" : "trailing_bytes",
                    less ? fmt::format("{}, but the file ends in row {}", declared, row)
                         : fmt::format("{}, but {} bytes follow them", declared, bytes.size() - count * type.bytes));
    }
    return StoredArray{type, std::move(sizes), bytes};
}

Status append_features(const StoredArray& array, std::size_t row, std::size_t begin, std::size_t count,
                       std::string_view file, std::vector<float>& features) {
    const std::size_t first = row * array.width();
    for (std::size_t column = begin; column < begin + count; ++column) {
        TRY_ASSIGN(const float feature, to_feature(array[first + column], Spot{file, row + 1, column + 1}));
        features.push_back(feature);
    }
    return {};
}

namespace {

Status check_label_count(const StoredArray& array, std::size_t examples, std::string_view file) {
    if (array.width() != 1 || array.examples() != examples) {
        return fail(ErrorKind::corrupt, "count_mismatch",
                    fmt::format("{}: {} labels for {} examples: there must be one each", file,
                                fmt::join(array.sizes, "x"), examples));
    }
    return {};
}

}  // namespace

Result<std::vector<float>> read_targets(const StoredArray& array, std::size_t examples, std::string_view file) {
    TRY(check_label_count(array, examples, file));
    std::vector<float> targets;
    targets.reserve(examples);
    for (std::size_t i = 0; i < examples; ++i) {
        TRY(append_features(array, i, 0, 1, file, targets));
    }
    return targets;
}

Result<std::vector<std::uint32_t>> read_labels(const StoredArray& array, std::size_t examples, std::string_view file) {
    TRY(check_label_count(array, examples, file));
    std::vector<std::uint32_t> labels;
    labels.reserve(examples);
    for (std::size_t i = 0; i < examples; ++i) {
        TRY_ASSIGN(const auto label, to_label(array[i], Spot{file, i + 1}));
        labels.push_back(label);
    }
    return labels;
}

}  // namespace causeway
