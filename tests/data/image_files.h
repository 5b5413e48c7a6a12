// Images as files, made by the libraries' own writers: what the tests of readers and the fuzzer start from.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <jpeglib.h>
#include <png.h>

#include "common/bytes.h"
#include "data/images.h"

namespace causeway {

/// What is written, of 1, 3 or (for PNG) 4 channels.
struct Picture {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 0;
    std::vector<std::uint8_t> values;  // u8[height, width, channels]

    [[nodiscard]] std::vector<float> floats() const { return {values.begin(), values.end()}; }
};

/// Smooth and different at every place, so that a mirrored or shifted image is another one.
inline Picture gradient_image(std::int64_t height, std::int64_t width, std::int64_t channels, int start = 0) {
    Picture image{height, width, channels, {}};
    for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
            for (std::int64_t c = 0; c < channels; ++c) {
                image.values.push_back(static_cast<std::uint8_t>((start + 9 * y + 5 * x + 40 * c) % 256));
            }
        }
    }
    return image;
}

inline Bytes png_bytes(const Picture& image) {
    png_image header{};
    header.version = PNG_IMAGE_VERSION;
    header.width = static_cast<png_uint_32>(image.width);
    header.height = static_cast<png_uint_32>(image.height);
    header.format = image.channels == 1 ? PNG_FORMAT_GRAY : image.channels == 4 ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
    png_alloc_size_t size = 0;
    png_image_write_to_memory(&header, nullptr, &size, 0, image.values.data(), 0, nullptr);
    Bytes bytes(size);
    png_image_write_to_memory(&header, bytes.data(), &size, 0, image.values.data(), 0, nullptr);
    bytes.resize(size);
    return bytes;
}

inline Bytes jpeg_bytes(const Picture& image, bool progressive = false) {
    jpeg_compress_struct info{};
    jpeg_error_mgr errors{};
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    unsigned char* buffer = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&info, &buffer, &size);
    info.image_width = static_cast<JDIMENSION>(image.width);
    info.image_height = static_cast<JDIMENSION>(image.height);
    info.input_components = static_cast<int>(image.channels);
    info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 95, TRUE);
    if (progressive) {
        jpeg_simple_progression(&info);
    }
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        auto row = const_cast<JSAMPROW>(image.values.data()) + info.next_scanline * image.width * image.channels;
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    const auto* first = reinterpret_cast<const std::byte*>(buffer);
    Bytes bytes(first, first + size);
    jpeg_destroy_compress(&info);
    std::free(buffer);
    return bytes;
}

}  // namespace causeway
