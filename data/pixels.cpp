// See pixels.h.
#include "data/pixels.h"

#include <cmath>

namespace causeway {
namespace {

float grey_of(double red, double green, double blue) {
    return static_cast<float>(std::floor((19595 * red + 38470 * green + 7471 * blue) / 65536 + 0.5));
}

}  // namespace

std::vector<float> sample_values(ByteView samples, int depth) {
    std::vector<float> values;
    if (depth == 8) {
        values.reserve(samples.size());
        for (const auto sample : samples) {
            values.push_back(static_cast<float>(std::to_integer<unsigned>(sample)));
        }
        return values;
    }
    values.reserve(samples.size() / 2);
    for (std::size_t i = 0; i + 1 < samples.size(); i += 2) {
        const auto sample = std::to_integer<unsigned>(samples[i]) << 8 | std::to_integer<unsigned>(samples[i + 1]);
        values.push_back(static_cast<float>(sample / 257.0));
    }
    return values;
}

void to_channels(Image& image, std::int64_t channels) {
    if (channels == 0 || channels == image.channels) {
        return;
    }
    std::vector<float> values;
    values.reserve(static_cast<std::size_t>(image.height * image.width * channels));
    if (channels == 1) {
        for (std::size_t i = 0; i + 2 < image.values.size(); i += 3) {
            values.push_back(grey_of(image.values[i], image.values[i + 1], image.values[i + 2]));
        }
    } else {
        for (const float value : image.values) {
            values.insert(values.end(), 3, value);
        }
    }
    image.values = std::move(values);
    image.channels = channels;
}

bool asks_for_turning(ByteView exif) {
    constexpr unsigned orientation = 0x0112;
    const bool little = exif.size() >= 2 && exif[0] == std::byte{'I'};
    const auto number = [&](std::size_t at, std::size_t bytes) -> std::uint32_t {
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < bytes && at + bytes <= exif.size(); ++i) {
            value = value << 8 | std::to_integer<std::uint32_t>(exif[at + (little ? bytes - 1 - i : i)]);
        }
        return value;
    };
    const std::size_t table = number(4, 4);
    const std::size_t entries = table < exif.size() ? number(table, 2) : 0;
    for (std::size_t i = 0; i < entries && table + 2 + 12 * (i + 1) <= exif.size(); ++i) {
        const auto entry = table + 2 + 12 * i;
        if (number(entry, 2) == orientation) {
            return number(entry + 8, 2) > 1;
        }
    }
    return false;
}

}  // namespace causeway
