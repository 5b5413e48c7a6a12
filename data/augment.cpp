// See augment.h.
#include "data/augment.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "common/random.h"
#include "common/text.h"
#include "data/number.h"

namespace causeway {
namespace {

constexpr std::int64_t most_pad = 4096;
constexpr std::size_t most_channels = 4096;

tl::unexpected<Error> bad(std::string_view text) {
    return fail(
        ErrorKind::invalid, "augment",
        fmt::format("augment: \"{}\" is none of \"crop PIXELS\", \"flip\", \"normalise MEAN DEVIATION\" (a number, "
                    "or one a channel: 0.5,0.4,0.4)",
                    text.substr(0, 80)));
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (auto& word : split_text(text, ' ')) {
        if (!word.empty()) {
            words.push_back(std::move(word));
        }
    }
    return words;
}

std::optional<std::vector<double>> numbers_of(std::string_view text) {
    std::vector<double> numbers;
    for (const auto& word : split_text(text, ',')) {
        const auto number = parse_number(word);
        if (!number || !std::isfinite(*number) || numbers.size() >= most_channels) {
            return std::nullopt;
        }
        numbers.push_back(*number);
    }
    return numbers;
}

struct Geometry {
    std::int64_t height, width, channels;
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(height * width * channels); }
};

/// Row y of the result is row y + dy of the image, and so with columns; outside is 0.
void shift(const Geometry& image, std::int64_t dy, std::int64_t dx, std::span<const float> from, std::span<float> to) {
    std::ranges::fill(to, 0.0f);
    const std::int64_t first = std::max<std::int64_t>(0, -dx);
    const std::int64_t last = std::min(image.width, image.width - dx);
    for (std::int64_t y = std::max<std::int64_t>(0, -dy); y < std::min(image.height, image.height - dy); ++y) {
        const auto source = ((y + dy) * image.width + first + dx) * image.channels;
        const auto target = (y * image.width + first) * image.channels;
        std::copy_n(from.begin() + source, std::max<std::int64_t>(0, last - first) * image.channels,
                    to.begin() + target);
    }
}

void mirror(const Geometry& image, std::span<float> values) {
    for (std::int64_t y = 0; y < image.height; ++y) {
        for (std::int64_t left = 0, right = image.width - 1; left < right; ++left, --right) {
            const auto a = values.begin() + (y * image.width + left) * image.channels;
            std::swap_ranges(a, a + image.channels, values.begin() + (y * image.width + right) * image.channels);
        }
    }
}

/// From -pad to pad, each alike: 32 bits over at most 8193 places, a bias of one in 500,000.
std::int64_t offset_of(std::uint32_t drawn, std::int64_t pad) {
    const auto places = static_cast<std::uint64_t>(2 * pad + 1);
    return static_cast<std::int64_t>(std::uint64_t{drawn} * places >> 32) - pad;
}

}  // namespace

Result<AugmentStep> parse_augment(std::string_view text) {
    const auto words = words_of(text);
    AugmentStep step;
    if (words.size() == 1 && words[0] == "flip") {
        return step;
    }
    if (words.size() == 2 && words[0] == "crop") {
        step.kind = AugmentStep::Kind::crop;
        const auto [end, code] = std::from_chars(words[1].data(), words[1].data() + words[1].size(), step.pad);
        const bool whole = code == std::errc() && end == words[1].data() + words[1].size();
        return whole && step.pad >= 1 && step.pad <= most_pad ? Result<AugmentStep>(step) : bad(text);
    }
    if (words.size() == 3 && words[0] == "normalise") {
        const auto mean = numbers_of(words[1]);
        const auto deviation = numbers_of(words[2]);
        if (!mean || !deviation || mean->size() != deviation->size() ||
            std::ranges::any_of(*deviation, [](double number) { return !(number > 1e-6); })) {
            return bad(text);
        }
        step.kind = AugmentStep::Kind::normalise;
        step.mean = *mean;
        step.deviation = *deviation;
        return step;
    }
    return bad(text);
}

std::string to_text(const AugmentStep& step) {
    switch (step.kind) {
        case AugmentStep::Kind::crop:
            return fmt::format("crop {}", step.pad);
        case AugmentStep::Kind::normalise:
            return fmt::format("normalise {} {}", fmt::join(step.mean, ","), fmt::join(step.deviation, ","));
        case AugmentStep::Kind::flip:
            break;
    }
    return "flip";
}

std::string augment_fault(std::span<const AugmentStep> steps, std::span<const std::int64_t> shape) {
    for (const AugmentStep& step : steps) {
        if (step.kind == AugmentStep::Kind::normalise) {
            const auto channels = static_cast<std::size_t>(shape.empty() ? 1 : shape.back());
            if (step.mean.size() != 1 && step.mean.size() != channels) {
                return fmt::format("augment: \"{}\" has {} channels, an example {}", to_text(step), step.mean.size(),
                                   channels);
            }
        } else if (shape.size() != 3) {
            return fmt::format("augment: \"{}\" needs images: shape = [height, width, channels]", to_text(step));
        } else if (step.pad >= std::min(shape[0], shape[1])) {
            return fmt::format("augment: \"{}\" could move an image of {}x{} out of sight", to_text(step), shape[0],
                               shape[1]);
        }
    }
    return {};
}

void augment(std::span<const AugmentStep> steps, std::span<const std::int64_t> shape, const AugmentDraws& draws,
             std::span<float> features) {
    if (!draws_anything(steps) || shape.size() != 3) {
        return;
    }
    const Geometry image{shape[0], shape[1], shape[2]};
    std::vector<float> before(image.size());
    RandomStream random(
        {.seed = draws.seed, .purpose = "augment", .round = draws.round, .node = draws.node, .step = draws.step});
    // Two blocks of numbers an example: enough for every step that `[data] augment` may hold.
    for (std::size_t row = 0; row < features.size() / image.size(); ++row) {
        const auto values = features.subspan(row * image.size(), image.size());
        random.seek(2 * (draws.first + row));
        for (const AugmentStep& step : steps) {
            if (step.kind == AugmentStep::Kind::crop) {
                const auto dy = offset_of(random.next_u32(), step.pad);
                const auto dx = offset_of(random.next_u32(), step.pad);
                std::ranges::copy(values, before.begin());
                shift(image, dy, dx, before, values);
            } else if (step.kind == AugmentStep::Kind::flip && random.next_u32() >> 31 == 1) {
                mirror(image, values);
            }
        }
    }
}

void normalise(std::span<const AugmentStep> steps, std::int64_t channels, std::span<float> features) {
    for (const AugmentStep& step : steps) {
        if (step.kind != AugmentStep::Kind::normalise) {
            continue;
        }
        const std::size_t period = step.mean.size() == 1 ? 1 : static_cast<std::size_t>(channels);
        for (std::size_t i = 0; i < features.size(); ++i) {
            const std::size_t channel = i % period;
            features[i] =
                static_cast<float>((static_cast<double>(features[i]) - step.mean[channel]) / step.deviation[channel]);
        }
    }
}

bool draws_anything(std::span<const AugmentStep> steps) {
    return std::ranges::any_of(steps,
                               [](const AugmentStep& step) { return step.kind != AugmentStep::Kind::normalise; });
}

}  // namespace causeway
