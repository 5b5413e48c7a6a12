// IDX, the format of MNIST and its relatives.
//
//   file = 00 00 type rank size{rank} value*      sizes are u32, sizes and values big-endian, the first size is N
//   type = 08 u8 | 09 i8 | 0B i16 | 0C i32 | 0D f32 | 0E f64
//
// A dataset is two files: images of any rank, and labels of rank 1 beside them ("images" in the name becomes "labels",
// "idx3" becomes "idx1", packed or not).
#pragma once

#include <string_view>

#include "common/bytes.h"
#include "data/reader.h"

namespace causeway {

/// One IDX file of each, unpacked; the file names are for messages.
struct IdxFiles {
    ByteView images;
    std::string_view images_file;
    ByteView labels;
    std::string_view labels_file;
};

/// errors  corrupt: bad_magic, truncated, trailing_bytes, bad_size, not_finite, count_mismatch; invalid: bad_label, and
///         a label column, for IDX has its own; overloaded: too many values
[[nodiscard]] Result<Dataset> parse_idx(const IdxFiles& files, const DataOptions& options, const ReadLimits& limits);

}  // namespace causeway
