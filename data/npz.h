// NPZ, numpy's archive of named arrays: `numpy.load("model.npz")["dense1.weight"]`.
//
// An NPZ is a ZIP whose entries are NPY files (APPNOTE.TXT of PKWARE, 4.3 and 4.4; numpy/lib/format.py):
//
//   file    = local* central* end
//   local   = header(name "NAME.npy", CRC-32, sizes) npy        stored, not compressed: weights hardly shrink
//   npy     = 93 "NUMPY" 1 0 length:u16 "{'descr': '<f4', 'fortran_order': False, 'shape': (10, 64), }" spaces value*
//
// Every time is 1980-01-01, so equal arrays give equal bytes. Pure, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"

namespace causeway {

/// Row-major; the values must outlive the call that takes it.
struct NamedArray {
    std::string name;  // without ".npy"
    std::vector<std::int64_t> shape;
    std::span<const float> values;  // as many as the shape says
};

/// errors  unsupported `too_large_for_npz`: 4 GiB or 65,535 arrays and more (the format's longer form is not written);
///         `array_not_for_npz`: a name of over 1,024 bytes or over 32 dimensions, which numpy would not read
/// cost    4 bytes an element and about 300 an array
[[nodiscard]] Result<Bytes> encode_npz(std::span<const NamedArray> arrays);

}  // namespace causeway
