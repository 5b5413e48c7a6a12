// PNG by libpng. The only file that sees png.h.
//
// Its simplified interface would apply gamma and compose transparency; the plain one gives the numbers of the file. It
// reports errors by a function that must not return: ours jumps back into the two functions that call it, which hold
// nothing that would need a destructor.
#include <csetjmp>
#include <cstring>

#include <png.h>

#include <fmt/format.h>

#include "data/images.h"

namespace causeway {
namespace {

struct PngDecoder {
    png_structp png = nullptr;
    png_infop info = nullptr;
    ByteView bytes;
    std::jmp_buf back;
    char text[160] = "it is empty";
    bool transparent = false;
    bool turned = false;

    explicit PngDecoder(ByteView file) : bytes(file) {}
    PngDecoder(const PngDecoder&) = delete;
    PngDecoder& operator=(const PngDecoder&) = delete;
    ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void give_up_png(png_structp png, png_const_charp message) {
    auto& decoder = *static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::strncpy(decoder.text, message, sizeof decoder.text - 1);
    std::longjmp(decoder.back, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void give_bytes(png_structp png, png_bytep room, std::size_t size) {
    auto& decoder = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (size > decoder.bytes.size()) {
        png_error(png, "the file ends early");
    }
    std::memcpy(room, decoder.bytes.data(), size);
    decoder.bytes = decoder.bytes.subspan(size);
}

/// Up to the pixels, and what is to be done with them.
bool read_png_header(PngDecoder& decoder) {
    if (setjmp(decoder.back) != 0) {
        return false;
    }
    decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, give_up_png, ignore_warning);
    decoder.info = decoder.png == nullptr ? nullptr : png_create_info_struct(decoder.png);
    if (decoder.info == nullptr) {
        return false;
    }
    png_set_read_fn(decoder.png, &decoder, give_bytes);
    png_set_user_limits(decoder.png, 0x7fffffff, 0x7fffffff);  // ours are asked for below, with their own message
    png_read_info(decoder.png, decoder.info);
    const auto colours = png_get_color_type(decoder.png, decoder.info);
    decoder.transparent =
        (colours & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(decoder.png, decoder.info, PNG_INFO_tRNS) != 0;
    png_uint_32 exif_bytes = 0;
    png_bytep exif = nullptr;
    if (png_get_eXIf_1(decoder.png, decoder.info, &exif_bytes, &exif) != 0) {
        decoder.turned = asks_for_turning(std::as_bytes(std::span(exif, exif_bytes)));
    }
    if (colours == PNG_COLOR_TYPE_PALETTE) {
        png_set_palette_to_rgb(decoder.png);
    } else if (colours == PNG_COLOR_TYPE_GRAY) {
        png_set_expand_gray_1_2_4_to_8(decoder.png);
    }
    png_set_strip_alpha(decoder.png);
    png_set_interlace_handling(decoder.png);
    return true;
}

bool read_png_rows(PngDecoder& decoder, std::vector<png_bytep>& rows) {
    if (setjmp(decoder.back) != 0) {
        return false;
    }
    png_read_image(decoder.png, rows.data());
    return true;
}

bool update_png(PngDecoder& decoder) {
    if (setjmp(decoder.back) != 0) {
        return false;
    }
    png_read_update_info(decoder.png, decoder.info);
    return true;
}

}  // namespace

Result<Image> decode_png(ByteView bytes, std::int64_t channels) {
    PngDecoder decoder(bytes);
    const auto damaged = [&decoder] {
        return fail(ErrorKind::corrupt, "bad_image", fmt::format("not a whole PNG image: {}", decoder.text));
    };
    if (!read_png_header(decoder)) {
        return damaged();
    }
    Image image;
    image.height = png_get_image_height(decoder.png, decoder.info);
    image.width = png_get_image_width(decoder.png, decoder.info);
    if (image.height > max_image_extent || image.width > max_image_extent ||
        image.height * image.width * 3 > max_image_values) {
        return fail(ErrorKind::overloaded, "too_large",
                    fmt::format("an image of {}x{}: at most {} each way", image.height, image.width, max_image_extent));
    }
    if (!update_png(decoder)) {
        return damaged();
    }
    image.channels = png_get_channels(decoder.png, decoder.info);
    image.transparent = decoder.transparent;
    image.turned = decoder.turned;
    const auto stride = png_get_rowbytes(decoder.png, decoder.info);
    Bytes samples(stride * static_cast<std::size_t>(image.height));
    std::vector<png_bytep> rows;
    for (std::int64_t row = 0; row < image.height; ++row) {
        rows.push_back(reinterpret_cast<png_bytep>(samples.data()) + static_cast<std::size_t>(row) * stride);
    }
    if (!read_png_rows(decoder, rows)) {
        return damaged();
    }
    image.values = sample_values(samples, png_get_bit_depth(decoder.png, decoder.info));
    to_channels(image, channels);
    return image;
}

}  // namespace causeway
