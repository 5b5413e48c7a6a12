// gzip in memory: zlib behind two functions, with a limit on what a small file may become.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "common/bytes.h"

namespace causeway {

/// Whether the bytes begin as a gzip file does (1f 8b).
[[nodiscard]] bool is_gzip(ByteView bytes);

/// All members of a gzip file, joined. Zeros behind a member are padding, as gzip and Python take them.
///
/// errors  corrupt `bad_gzip`: damaged, truncated, or followed by other bytes; overloaded `inflated_too_large`: more
///         than `limit` bytes, or more than 64 MiB at over 512 times the packed size (data do not pack so; bombs do)
[[nodiscard]] Result<Bytes> gunzip(ByteView packed, std::uint64_t limit);

/// The same a block at a time.
class Inflater {
public:
    Inflater();
    Inflater(Inflater&&) noexcept;
    Inflater& operator=(Inflater&&) noexcept;
    ~Inflater();

    /// The next packed bytes, which stay where they are until fill() has nothing more to give.
    void feed(ByteView packed);
    /// Fills as much of `room` as it can; 0: it needs more packed bytes. errors: corrupt `bad_gzip`
    Result<std::size_t> fill(std::span<std::byte> room);
    /// Nothing more comes. errors: corrupt `bad_gzip`: a member is not whole
    [[nodiscard]] Status end() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// errors   overloaded `inflated_too_large`, as gunzip's
[[nodiscard]] Status check_inflated(std::uint64_t inflated, std::uint64_t packed, std::uint64_t limit);

/// One member at level 6 with time 0 and no name: equal input gives equal bytes.
[[nodiscard]] Bytes gzip(ByteView bytes);

/// The CRC-32 of gzip and ZIP.
[[nodiscard]] std::uint32_t zip_crc32(ByteView bytes);

}  // namespace causeway
