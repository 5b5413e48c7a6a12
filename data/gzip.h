// gzip in memory: zlib behind two functions, with a limit on what a small file may become.
#pragma once

#include <cstdint>

#include "common/bytes.h"

namespace causeway {

/// Whether the bytes begin as a gzip file does (1f 8b).
[[nodiscard]] bool is_gzip(ByteView bytes);

/// All members of a gzip file, joined.
///
/// errors  corrupt `bad_gzip`: damaged, truncated, or followed by other bytes; overloaded `inflated_too_large`: more
///         than `limit` bytes, or more than 64 MiB at over 512 times the packed size (data do not pack so; bombs do)
[[nodiscard]] Result<Bytes> gunzip(ByteView packed, std::uint64_t limit);

/// One member at level 6 with time 0 and no name: equal input gives equal bytes.
[[nodiscard]] Bytes gzip(ByteView bytes);

/// The CRC-32 of gzip and ZIP.
[[nodiscard]] std::uint32_t zip_crc32(ByteView bytes);

}  // namespace causeway
