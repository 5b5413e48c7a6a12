// Folders of images: one folder per class, a PNG or JPEG file per example, all of one size.
//
//   PATH/cat/0001.png  PATH/cat/0002.jpg  PATH/dog/a.png        classes: cat, dog, in the order of their names
//
// Values are 0 to 255 by the rules of data/pixels.h, channels last, one channel for grey and three for colour; `shape`
// of the options decides which where it is given. Classes that a node lacks keep their numbers only where a manifest
// lists `classes`. What is no image is skipped and counted; folders without images are no classes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "common/bytes.h"
#include "data/pixels.h"
#include "data/reader.h"

namespace causeway {

/// What a decoder may be made to hold: 64 million values, far above what a network is given.
constexpr std::int64_t max_image_extent = 16'384;
constexpr std::int64_t max_image_values = std::int64_t{1} << 26;

/// channels  1 or 3 converts; 0 takes what the file has.
///
/// errors   corrupt `bad_image`: not such a file, or damaged; overloaded `too_large`
[[nodiscard]] Result<Image> decode_png(ByteView bytes, std::int64_t channels);
/// errors   as decode_png; a file that ends early is damaged; unsupported `image_kind`: CMYK, 12 bits, and what else
///          the library does not decode
[[nodiscard]] Result<Image> decode_jpeg(ByteView bytes, std::int64_t channels);

/// errors   not_found `no_dataset`: no folders of images; unsupported `image_kind`: a file of another image format;
///          invalid `ambiguous_name`: two folders of equal names; invalid `mixed_channels`: grey and colour, and no
///          shape that says which; corrupt `bad_image`, `image_size`: another size than the
///          first one or the options' shape, with the file; invalid `bad_label`: a folder that is no class of the
///          manifest; overloaded: too many files or values
[[nodiscard]] Result<Dataset> read_image_folders(const std::filesystem::path& path, const DataOptions& options,
                                                 const ReadLimits& limits);

}  // namespace causeway
