// Byte strings, hexadecimal and little-endian cursors. A cursor over hostile bytes never reads outside them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/result.h"

namespace causeway {

static_assert(std::endian::native == std::endian::little, "formats are little-endian and copied as they are");

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}
inline std::string_view as_text(ByteView bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes to_bytes(ByteView bytes) {
    return {bytes.begin(), bytes.end()};
}
inline Bytes to_bytes(std::string_view text) {
    return to_bytes(as_bytes(text));
}

std::string to_hex(ByteView bytes);
Result<Bytes> from_hex(std::string_view text);
/// Base64 with the URL alphabet and without padding (tokens).
std::string to_base64url(ByteView bytes);
Result<Bytes> from_base64url(std::string_view text);

/// Appends little-endian values.
class ByteWriter {
public:
    template <class T>
    void put(T value) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto* first = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), first, first + sizeof(T));
    }
    void put_bytes(ByteView bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    /// u32 length, then the characters.
    void put_text(std::string_view text) {
        put(static_cast<std::uint32_t>(text.size()));
        put_bytes(as_bytes(text));
    }
    [[nodiscard]] Bytes take() { return std::move(bytes_); }
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

private:
    Bytes bytes_;
};

/// Reads little-endian values; every read is checked and yields `corrupt` past the end.
class ByteReader {
public:
    explicit ByteReader(ByteView bytes) : bytes_(bytes) {}

    template <class T>
    [[nodiscard]] Result<T> get() {
        static_assert(std::is_trivially_copyable_v<T>);
        TRY_ASSIGN(const auto raw, get_bytes(sizeof(T)));
        T value;
        std::memcpy(&value, raw.data(), sizeof(T));
        return value;
    }
    [[nodiscard]] Result<ByteView> get_bytes(std::size_t size) {
        if (size > bytes_.size()) {
            return fail(ErrorKind::corrupt, "truncated", "the data ends early");
        }
        const auto head = bytes_.first(size);
        bytes_ = bytes_.subspan(size);
        return head;
    }
    /// What put_text wrote, refused when longer than `limit`.
    [[nodiscard]] Result<std::string> get_text(std::size_t limit) {
        TRY_ASSIGN(const auto size, get<std::uint32_t>());
        if (size > limit) {
            return fail(ErrorKind::corrupt, "too_long", "a text is longer than its limit");
        }
        TRY_ASSIGN(const auto raw, get_bytes(size));
        return std::string(as_text(raw));
    }
    [[nodiscard]] std::size_t left() const { return bytes_.size(); }

private:
    ByteView bytes_;
};

}  // namespace causeway
