// The bytes of an update: what a client keeps beside its state, offers by digest, and the coordinator decodes.
//
//   update  := magic version codec parts
//   magic   := "CWUP"
//   version := u16                                 1; another one is `unsupported`
//   codec   := text                                u32 length, then the canonical spelling ("dense")
//   parts   := u32 count, part[count]
//   part    := u8 arena, u8 dtype, u8 rank, u8 0, i64 dimension[rank],
//              u32 count, range[count], u64 size, payload[size]
//   range   := u64 begin, u64 end                  elements of the arena; ascending, disjoint, not empty
//   payload := the codec's own (dense: f32[n])
//
// All numbers are little-endian; nothing follows the last part. Equal updates have equal bytes, so the digest of an
// update names its values. Decoding is total: any bytes give an update or a named error.
#pragma once

#include <array>

#include "compression/codec.h"

namespace causeway {

constexpr std::size_t max_update_rank = 8;
constexpr std::size_t max_codec_text = 256;

/// What the receiver is ready to hold, from its own tensor table, never from the sender's words.
struct DecodeLimits {
    std::uint32_t parts = 0;
    std::uint64_t elements = 0;                        // of all parts together
    std::uint32_t ranges = 1 << 20;                    // of all parts together
    std::uint64_t range_end = std::uint64_t{1} << 48;  // sanity only: whether a range is wanted, the firewall says
};

/// Limits for updates of this model: twice what it holds, so that a repeated part is named by the firewall as such.
DecodeLimits decode_limits(const TensorTable& table);

using ArenaRanges = std::array<RangeSet, 3>;                // by ArenaKind
using ArenaValues = std::array<std::span<const float>, 3>;  // by ArenaKind

/// What training changes and others are told of: trainable values and buffers, but for tensors that stay with their
/// node. Frozen values are nobody's to send.
ArenaRanges exchanged_ranges(const TensorTable& table);

/// One part per tensor that the wanted ranges touch, values copied from the arenas.
///
/// shapes  arenas[kind] f32[table.arena_size(kind)]; wanted[kind] within it. Empty sets are skipped.
Update make_update(const TensorTable& table, const ArenaRanges& wanted, const ArenaValues& arenas);
/// The same, to be encoded at once: values of one range stay in the arenas, which must outlive the update.
Update borrow_update(const TensorTable& table, const ArenaRanges& wanted, const ArenaValues& arenas);

/// cost  one allocation of the encoded size
Bytes encode_update(const Codec& codec, const Update& update);

/// errors   corrupt: not an update, truncated, over a limit, or of another codec; unsupported: a newer version
/// cost     one pass; memory at most the payload's size (dense), none where dense values lie where floats may
/// threads  reentrant
Result<Update> decode_update(const Codec& codec, const SharedBytes& bytes, const DecodeLimits& limits);
/// The same, of bytes that will not stay: all values are copied.
inline Result<Update> decode_update(const Codec& codec, ByteView bytes, const DecodeLimits& limits) {
    return decode_update(codec, SharedBytes(std::shared_ptr<const void>(), bytes), limits);
}

/// An update of the codec dense that begins so many bytes behind an address for floats has all its values at such ones:
/// before the first payload are 19 bytes and multiples of 4, and between any two multiples of 4.
constexpr std::size_t dense_shift = 1;

}  // namespace causeway
