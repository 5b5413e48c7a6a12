// PNG by libpng's simplified interface, which checks what it reads and jumps nowhere. The only file that sees png.h.
#include <png.h>

#include <fmt/format.h>

#include "data/images.h"

namespace causeway {

Result<Image> decode_png(ByteView bytes, std::int64_t channels) {
    png_image header{};
    header.version = PNG_IMAGE_VERSION;
    const auto damaged = [&header] {
        png_image_free(&header);
        return fail(ErrorKind::corrupt, "bad_image", fmt::format("not a whole PNG image: {}", header.message));
    };
    if (png_image_begin_read_from_memory(&header, bytes.data(), bytes.size()) == 0) {
        return damaged();
    }
    Image image{header.height, header.width, channels, {}};
    if (channels == 0) {
        image.channels = (header.format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1;
    }
    if (image.height > max_image_extent || image.width > max_image_extent ||
        image.height * image.width * image.channels > max_image_values) {
        png_image_free(&header);
        return fail(ErrorKind::overloaded, "too_large",
                    fmt::format("an image of {}x{}: at most {} each way", image.height, image.width, max_image_extent));
    }
    header.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    image.values.resize(PNG_IMAGE_SIZE(header));
    const png_color black{0, 0, 0};
    if (png_image_finish_read(&header, &black, image.values.data(), 0, nullptr) == 0) {
        return damaged();
    }
    return image;
}

}  // namespace causeway
