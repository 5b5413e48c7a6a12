// NPY, numpy's array format, versions 1 to 3 (numpy/lib/format.py).
//
//   file   = 93 "NUMPY" major minor length header value*       length: u16, from version 2 on u32
//   header = "{'descr': '<f4', 'fortran_order': False, 'shape': (10, 64), }" and spaces
//
// Labels stand in a column (label = "last" or an index, for arrays of rank 2), or in a file beside this one:
// "features" in the name becomes "labels", or NAME.npy goes with NAME-labels.npy. Without either, there are none.
#pragma once

#include <string_view>

#include "common/bytes.h"
#include "data/reader.h"

namespace causeway {

struct NpyFiles {
    ByteView features;
    std::string_view features_file;
    ByteView labels;  // empty: no such file
    std::string_view labels_file;
};

/// errors  corrupt: bad_magic, bad_header, truncated, trailing_bytes, bad_size, not_finite, count_mismatch;
///         unsupported: a type or order of values; invalid: bad_label, no_such_column; overloaded: too many values
[[nodiscard]] Result<Dataset> parse_npy(const NpyFiles& files, const DataOptions& options, const ReadLimits& limits);

}  // namespace causeway
