// What a pixel's number is, one rule each, whatever format an image came in (docs/data.md). Pure, any thread.
//
//   bit depth    v * 255 / (2^depth - 1): 0 to 255; of 16 bits with a fraction, so that nothing is lost
//   colour       numbers as stored: gamma, profiles (gAMA, sRGB, iCCP, cHRM) and colour spaces are not applied
//   palette      the colours of its entries, three channels
//   grey         of colour: (19595 R + 38470 G + 7471 B) / 65536, rounded to a whole number (Rec. 601, as Pillow does)
//   alpha        left out; the colours under it stay as stored
//   orientation  as stored; EXIF's wish is counted and said
#pragma once

#include <cstdint>
#include <vector>

#include "common/bytes.h"

namespace causeway {

struct Image {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 0;  // 1 or 3
    std::vector<float> values;  // f32[height, width, channels], 0 to 255
    bool transparent = false;   // the file has an alpha channel or transparent colours
    bool turned = false;        // the file's EXIF asks viewers to turn or mirror it
};

/// Samples of 8 or 16 bits (big-endian, as PNG stores them) as values.
[[nodiscard]] std::vector<float> sample_values(ByteView samples, int depth);

/// Makes grey of colour or colour of grey. `channels`: 1, 3, or 0 for what there is.
void to_channels(Image& image, std::int64_t channels);

/// Whether EXIF data (a TIFF structure, without the "Exif" mark) ask for another orientation than the stored one.
/// Total: any bytes.
[[nodiscard]] bool asks_for_turning(ByteView exif);

}  // namespace causeway
