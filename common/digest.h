// SHA-256, HMAC and secret random bytes: the few OpenSSL primitives that several folders share.
#pragma once

#include <array>
#include <compare>
#include <memory>
#include <string>

#include "common/bytes.h"

namespace causeway {

struct Digest {
    std::array<std::byte, 32> bytes{};

    auto operator<=>(const Digest&) const = default;
    [[nodiscard]] bool empty() const { return *this == Digest{}; }
    /// 64 hexadecimal digits.
    [[nodiscard]] std::string hex() const { return to_hex(bytes); }
    /// The first 8 hexadecimal digits, for people.
    [[nodiscard]] std::string short_hex() const { return hex().substr(0, 8); }
};

Result<Digest> digest_from_hex(std::string_view text);

/// SHA-256 of a stream. cost: 2 GB/s on one core.
class Hasher {
public:
    Hasher();
    Hasher(Hasher&&) noexcept;
    Hasher& operator=(Hasher&&) noexcept;
    ~Hasher();
    void update(ByteView bytes);
    void update(std::string_view text) { update(as_bytes(text)); }
    /// The digest of all that came; the hasher must not be used after it.
    [[nodiscard]] Digest finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

[[nodiscard]] Digest sha256(ByteView bytes);
[[nodiscard]] inline Digest sha256(std::string_view text) {
    return sha256(as_bytes(text));
}
[[nodiscard]] Digest hmac_sha256(ByteView key, ByteView bytes);
/// Equal, in time that does not depend on where they differ.
[[nodiscard]] bool equal_in_constant_time(ByteView a, ByteView b);
/// From the operating system. For keys and tokens only: nothing that decides a result may use it.
[[nodiscard]] Bytes secret_random_bytes(std::size_t count);

}  // namespace causeway
