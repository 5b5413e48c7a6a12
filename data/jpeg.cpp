// JPEG by libjpeg-turbo. The only file that sees jpeglib.h.
//
// The library reports errors by a function that must not return: ours jumps back into `decode`, which holds nothing
// that would need a destructor. Its warnings (a file that ends early) leave grey pixels behind: they count as errors.
// The slow integer transform has the same bits on every processor.
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE

#include <jpeglib.h>

#include <jerror.h>

#include <fmt/format.h>

#include "data/images.h"

namespace causeway {
namespace {

constexpr int most_scans = 200;  // a progressive file of a few bytes can ask for thousands of passes

struct Decoder {
    jpeg_decompress_struct info;
    jpeg_error_mgr errors;
    jpeg_progress_mgr progress;
    std::jmp_buf back;
    char text[JMSG_LENGTH_MAX];
};

Decoder& decoder_of(j_common_ptr info) {
    return *static_cast<Decoder*>(info->client_data);
}

[[noreturn]] void give_up(j_common_ptr info) {
    Decoder& decoder = decoder_of(info);
    decoder.errors.format_message(info, decoder.text);
    std::longjmp(decoder.back, 1);
}

void note_message(j_common_ptr info, int level) {
    if (level < 0) {
        give_up(info);
    }
}

void watch_scans(j_common_ptr info) {
    if (decoder_of(info).info.input_scan_number > most_scans) {
        give_up(info);
    }
}

enum class Outcome { done, damaged, too_large, cmyk, unsupported };

/// What is wrong with the kind of file, and not with this one.
bool is_about_kind(int code) {
    return code == JERR_BAD_PRECISION || code == JERR_SOF_UNSUPPORTED || code == JERR_ARITH_NOTIMPL ||
           code == JERR_CONVERSION_NOTIMPL || code == JERR_COMPONENT_COUNT || code == JERR_NOT_COMPILED;
}

/// Looks through the kept APP1 markers.
bool exif_turns(const jpeg_decompress_struct& info) {
    constexpr std::string_view mark("Exif\0\0", 6);
    for (const auto* marker = info.marker_list; marker != nullptr; marker = marker->next) {
        const ByteView bytes = std::as_bytes(std::span(marker->data, marker->data_length));
        if (as_text(bytes).starts_with(mark) && asks_for_turning(bytes.subspan(mark.size()))) {
            return true;
        }
    }
    return false;
}

/// Nothing in here has a destructor: errors leave it by a jump.
Outcome decode(Decoder& decoder, ByteView bytes, Image& image, Bytes& samples) {
    auto& info = decoder.info;
    if (setjmp(decoder.back) != 0) {
        return is_about_kind(decoder.errors.msg_code) ? Outcome::unsupported : Outcome::damaged;
    }
    jpeg_create_decompress(&info);
    info.client_data = &decoder;
    info.progress = &decoder.progress;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_save_markers(&info, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&info, TRUE);
    image.height = info.image_height;
    image.width = info.image_width;
    if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK) {
        return Outcome::cmyk;
    }
    image.channels = info.num_components == 1 ? 1 : 3;
    if (image.height > max_image_extent || image.width > max_image_extent ||
        image.height * image.width * 3 > max_image_values) {
        return Outcome::too_large;
    }
    info.out_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&info);
    const std::int64_t stride = image.width * image.channels;
    if (info.output_components != image.channels) {
        return Outcome::damaged;
    }
    image.turned = exif_turns(info);
    samples.resize(static_cast<std::size_t>(image.height * stride));
    while (info.output_scanline < info.output_height) {
        JSAMPROW row =
            reinterpret_cast<JSAMPROW>(samples.data()) + static_cast<std::int64_t>(info.output_scanline) * stride;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    return Outcome::done;
}

}  // namespace

Result<Image> decode_jpeg(ByteView bytes, std::int64_t channels) {
    Decoder decoder{};
    decoder.info.err = jpeg_std_error(&decoder.errors);
    decoder.info.client_data = &decoder;  // errors may come before it is created
    decoder.errors.error_exit = give_up;
    decoder.errors.emit_message = note_message;
    decoder.progress.progress_monitor = watch_scans;
    Image image;
    Bytes samples;
    const Outcome outcome = decode(decoder, bytes, image, samples);
    jpeg_destroy_decompress(&decoder.info);
    if (outcome == Outcome::too_large) {
        return fail(ErrorKind::overloaded, "too_large",
                    fmt::format("an image of {}x{}: at most {} each way", image.height, image.width, max_image_extent));
    }
    if (outcome == Outcome::cmyk) {
        return fail(ErrorKind::unsupported, "image_kind",
                    "the JPEG image is CMYK, and how its colours are to be read is not in it: convert it to RGB");
    }
    if (outcome == Outcome::unsupported) {
        return fail(
            ErrorKind::unsupported, "image_kind",
            fmt::format("a kind of JPEG image that is not read: {}; save it as RGB or grey of 8 bits", decoder.text));
    }
    if (outcome == Outcome::damaged) {
        return fail(ErrorKind::corrupt, "bad_image", fmt::format("not a whole JPEG image: {}", decoder.text));
    }
    image.values = sample_values(samples, 8);
    to_channels(image, channels);
    return image;
}

}  // namespace causeway
