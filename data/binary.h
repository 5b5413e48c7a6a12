// What the binary formats share: element types, and a declared shape checked against the bytes that are there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "data/number.h"

namespace causeway {

enum class ElementKind { unsigned_integer, signed_integer, real };
enum class ByteOrder { little, big };

struct ElementType {
    ElementKind kind;
    std::size_t bytes;  // 1, 2, 4 or 8; reals 2, 4 or 8
    ByteOrder order;
};

/// Values as a file stores them: a view, decoded one at a time.
struct StoredArray {
    ElementType type;
    std::vector<std::uint64_t> sizes;  // the first is N
    ByteView bytes;                    // exactly the product of the sizes, times the element's bytes
    bool by_columns = false;           // the first index varies fastest (Fortran's order)

    [[nodiscard]] std::size_t examples() const { return sizes.front(); }
    [[nodiscard]] std::size_t width() const { return bytes.size() / type.bytes / sizes.front(); }
    /// Element `index` in row-major order. Integers beyond 2^53 are rounded.
    [[nodiscard]] double operator[](std::size_t index) const;
};

/// errors  corrupt: `bad_size` no dimension, a size of 0, or a product beyond 2^62; `truncated`; `trailing_bytes`;
///         overloaded `too_large`: more than `most_values`
[[nodiscard]] Result<StoredArray> make_stored_array(ElementType type, std::vector<std::uint64_t> sizes, ByteView bytes,
                                                    std::string_view file, std::uint64_t most_values);

/// Columns [begin, begin + count) of each row as features. errors: corrupt not_finite
[[nodiscard]] Status append_features(const StoredArray& array, std::size_t row, std::size_t begin, std::size_t count,
                                     std::string_view file, std::vector<float>& features);

/// A rank-1 array of N class numbers. errors: corrupt `count_mismatch`, invalid bad_label
[[nodiscard]] Result<std::vector<std::uint32_t>> read_labels(const StoredArray& array, std::size_t examples,
                                                             std::string_view file);

/// The same for regression. errors: corrupt `count_mismatch`, not_finite
[[nodiscard]] Result<std::vector<float>> read_targets(const StoredArray& array, std::size_t examples,
                                                      std::string_view file);

}  // namespace causeway
