// Small datasets and files for the tests of data/: everything is made here, nothing is read from the machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "common/bytes.h"
#include "common/file.h"
#include "data/dataset.h"

namespace causeway {

/// A folder of its own for one test, removed at its end.
class TempFolder {
public:
    TempFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "causeway-data-XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    ~TempFolder() { std::filesystem::remove_all(path_); }

    [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// Writes a file and returns its path.
    std::filesystem::path put(std::string_view name, ByteView bytes) const {
        REQUIRE(write_file_durably(path_ / name, bytes));
        return path_ / name;
    }
    std::filesystem::path put(std::string_view name, std::string_view text) const { return put(name, as_bytes(text)); }

private:
    std::filesystem::path path_;
};

/// Random features and labels; every class has at least one example where `examples` allows it.
inline Dataset random_dataset(std::size_t examples, std::uint32_t classes, std::vector<std::int64_t> shape,
                              unsigned seed) {
    std::mt19937 random(seed);
    Dataset dataset{"random", "test", std::move(shape), {}, {}, classes, {}};
    std::normal_distribution<float> value(0.0f, 100.0f);
    for (std::size_t i = 0; i < examples * dataset.example_size(); ++i) {
        dataset.features.push_back(value(random));
    }
    for (std::size_t i = 0; classes > 0 && i < examples; ++i) {
        dataset.labels.push_back(i < classes ? static_cast<std::uint32_t>(i)
                                             : static_cast<std::uint32_t>(random() % classes));
    }
    dataset.layout.label_column = dataset.example_size();
    return dataset;
}

/// An IDX file: type code, sizes, and the values' bytes as they are.
inline Bytes idx_bytes(unsigned type, const std::vector<std::uint32_t>& sizes, ByteView values) {
    Bytes bytes{std::byte{0}, std::byte{0}, static_cast<std::byte>(type), static_cast<std::byte>(sizes.size())};
    for (const auto size : sizes) {
        for (int shift = 24; shift >= 0; shift -= 8) {
            bytes.push_back(static_cast<std::byte>(size >> shift));
        }
    }
    bytes.insert(bytes.end(), values.begin(), values.end());
    return bytes;
}

inline Bytes byte_values(std::size_t count, unsigned modulus) {
    Bytes values;
    for (std::size_t i = 0; i < count; ++i) {
        values.push_back(static_cast<std::byte>(i % modulus));
    }
    return values;
}

/// An NPY file of version 1 with this header dictionary.
inline Bytes npy_bytes(std::string_view header, ByteView values) {
    Bytes bytes = to_bytes(std::string_view("\x93NUMPY\x01\x00", 8));
    const auto length = static_cast<std::uint16_t>(header.size());
    bytes.push_back(static_cast<std::byte>(length & 0xff));
    bytes.push_back(static_cast<std::byte>(length >> 8));
    bytes.insert(bytes.end(), as_bytes(header).begin(), as_bytes(header).end());
    bytes.insert(bytes.end(), values.begin(), values.end());
    return bytes;
}

inline std::string npy_header(std::string_view type, std::string_view shape) {
    return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}\n", type, shape);
}

template <class T>
Bytes npy_array(std::string_view type, std::string_view shape, const std::vector<T>& values) {
    return npy_bytes(npy_header(type, shape), std::as_bytes(std::span(values)));
}

/// One to eight random edits: a byte replaced, inserted, removed, doubled, or the tail cut off.
inline Bytes mutated(Bytes bytes, std::mt19937& random) {
    const auto edits = 1 + random() % 8;
    for (unsigned edit = 0; edit < edits && !bytes.empty(); ++edit) {
        const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size());
        switch (random() % 5) {
            case 0:
                *at = static_cast<std::byte>(random());
                break;
            case 1:
                bytes.insert(at, static_cast<std::byte>(random()));
                break;
            case 2:
                bytes.erase(at);
                break;
            case 3:
                *at ^= static_cast<std::byte>(1u << random() % 8);
                break;
            default:
                bytes.erase(random() % 4 == 0 ? at : bytes.end() - 1, bytes.end());
                break;
        }
    }
    return bytes;
}

/// What a reader promises of every dataset it returns.
inline bool is_sound(const Dataset& dataset) {
    const auto finite = [](float value) { return std::isfinite(value); };
    const auto known = [&](std::uint32_t label) { return label < dataset.classes; };
    return dataset.size() > 0 && dataset.features.size() == dataset.size() * dataset.example_size() &&
           std::all_of(dataset.features.begin(), dataset.features.end(), finite) &&
           (dataset.labels.size() == (dataset.labelled() ? dataset.size() : 0)) &&
           std::all_of(dataset.labels.begin(), dataset.labels.end(), known);
}

}  // namespace causeway
