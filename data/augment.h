// Augmentations of images: other crops and mirror images in training, normalised channels everywhere.
//
// What is drawn for an example is a function of (seed, round, node, step, its place in the epoch): neither cuts nor
// microbatches nor a prefetching thread nor a restart change it. Pure, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace causeway {

/// One line of `[data] augment`.
struct AugmentStep {
    enum class Kind {
        crop,      // moved by up to `pad` pixels each way; what comes in is 0
        flip,      // mirrored left to right, every second one
        normalise  // (value - mean) / deviation by channel; no choice, so evaluations have it too
    };
    Kind kind = Kind::flip;
    std::int64_t pad = 0;
    std::vector<double> mean;       // of each channel, or one for all
    std::vector<double> deviation;  // above 0; as many
    bool operator==(const AugmentStep&) const = default;
};

/// "crop 4", "flip", "normalise 0.5 0.25", "normalise 0.49,0.48,0.45 0.25,0.24,0.26".
///
/// errors   invalid `augment`
[[nodiscard]] Result<AugmentStep> parse_augment(std::string_view text);
/// The one spelling: parse_augment(to_text(step)) == step.
[[nodiscard]] std::string to_text(const AugmentStep& step);

/// What is wrong with the steps on examples of this shape, together; empty: nothing.
[[nodiscard]] std::string augment_fault(std::span<const AugmentStep> steps, std::span<const std::int64_t> shape);

/// Which examples are worked on, and by which numbers.
struct AugmentDraws {
    std::uint64_t seed = 0;
    std::uint64_t round = 0;
    std::uint64_t node = 0;
    std::uint64_t step = 0;   // batch of the round
    std::uint64_t first = 0;  // place of the first example in its epoch
};

/// The steps with a choice, on examples that stand side by side.
///
/// shapes   features f32[B, H, W, C], shape H, W, C
/// cost     reads and writes each value once per step
void augment(std::span<const AugmentStep> steps, std::span<const std::int64_t> shape, const AugmentDraws& draws,
             std::span<float> features);
/// The steps without a choice, on values side by side, channels last.
void normalise(std::span<const AugmentStep> steps, std::int64_t channels, std::span<float> features);
/// Whether any step has a choice.
[[nodiscard]] bool draws_anything(std::span<const AugmentStep> steps);

}  // namespace causeway
