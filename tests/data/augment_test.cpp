// Augmentations: what each does, that it depends on the example's place alone, and which texts are refused.
#include "data/augment.h"

#include <set>

#include <catch2/catch.hpp>

#include "data/data_options.h"

namespace causeway {
namespace {

const std::vector<std::int64_t> shape{3, 4, 2};

std::vector<float> augmented_images(std::size_t count) {
    std::vector<float> values;
    for (std::size_t i = 0; i < count * 24; ++i) {
        values.push_back(static_cast<float>(i + 1));
    }
    return values;
}

std::vector<AugmentStep> steps(const std::vector<std::string>& texts) {
    std::vector<AugmentStep> list;
    for (const auto& text : texts) {
        const auto step = parse_augment(text);
        REQUIRE(step);
        list.push_back(*step);
    }
    return list;
}

const AugmentDraws draws{.seed = 1, .round = 2, .node = 3, .step = 4};

}  // namespace

TEST_CASE("an augmentation has one spelling, and anything else is refused with the forms", "[unit][augment]") {
    for (const auto* text : {"crop 4", "flip", "normalise 0.5 0.25", "normalise 0.49,0.48,0.45 0.25,0.24,0.26"}) {
        CAPTURE(text);
        REQUIRE(parse_augment(text));
        CHECK(to_text(*parse_augment(text)) == text);
    }
    CHECK(to_text(*parse_augment("  crop   2 ")) == "crop 2");
    for (const auto* text : {"", "crop", "crop 0", "crop -1", "crop 5000", "flip 1", "normalise", "normalise 1",
                             "normalise 1 0", "normalise 1,2 1", "normalise nan 1", "normalise 1 -1", "rotate 3"}) {
        CAPTURE(text);
        REQUIRE_FALSE(parse_augment(text));
        CHECK(parse_augment(text).error().code == "augment");
    }
}

TEST_CASE("a flip mirrors each row of pixels or leaves the image as it is, both about as often", "[unit][augment]") {
    const std::size_t count = 2000;
    const auto before = augmented_images(count);
    auto after = before;
    augment(steps({"flip"}), shape, draws, after);
    std::size_t mirrored = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const bool same = std::equal(after.begin() + static_cast<std::ptrdiff_t>(24 * i),
                                     after.begin() + static_cast<std::ptrdiff_t>(24 * i + 24),
                                     before.begin() + static_cast<std::ptrdiff_t>(24 * i));
        mirrored += same ? 0 : 1;
        for (std::size_t y = 0; y < 3; ++y) {
            for (std::size_t x = 0; x < 4; ++x) {
                const std::size_t from = 24 * i + 8 * y + 2 * (same ? x : 3 - x);
                REQUIRE(after[24 * i + 8 * y + 2 * x] == before[from]);
                REQUIRE(after[24 * i + 8 * y + 2 * x + 1] == before[from + 1]);  // channels keep their order
            }
        }
    }
    CHECK(mirrored > count * 45 / 100);
    CHECK(mirrored < count * 55 / 100);
}

TEST_CASE("a crop moves an image by at most its pad, and what comes in is 0", "[unit][augment]") {
    const auto before = augmented_images(300);
    auto after = before;
    augment(steps({"crop 2"}), shape, draws, after);
    std::set<std::pair<int, int>> moves;
    for (std::size_t i = 0; i < 300; ++i) {
        bool found = false;
        for (int dy = -2; dy <= 2 && !found; ++dy) {
            for (int dx = -2; dx <= 2 && !found; ++dx) {
                bool fits = true;
                for (int at = 0; at < 24; ++at) {
                    const int y = at / 8 + dy, x = at / 2 % 4 + dx;
                    const bool inside = y >= 0 && y < 3 && x >= 0 && x < 4;
                    const float wanted = inside ? before[24 * i + static_cast<std::size_t>(8 * y + 2 * x + at % 2)] : 0;
                    fits = fits && after[24 * i + static_cast<std::size_t>(at)] == wanted;
                }
                found = fits;
                if (fits) {
                    moves.emplace(dy, dx);
                }
            }
        }
        REQUIRE(found);
    }
    CHECK(moves.size() == 25);
}

TEST_CASE("what is drawn follows from the example's place, not from who is beside it", "[property][augment]") {
    const auto list = steps({"crop 2", "flip", "crop 1"});
    auto whole = augmented_images(12);
    augment(list, shape, draws, whole);
    auto parts = augmented_images(12);
    for (const auto& [first, count] : {std::pair{0, 5}, std::pair{5, 1}, std::pair{6, 6}}) {
        auto here = draws;
        here.first = static_cast<std::uint64_t>(first);
        augment(list, shape, here,
                std::span(parts).subspan(24u * static_cast<unsigned>(first), 24u * static_cast<unsigned>(count)));
    }
    CHECK(parts == whole);
    for (AugmentDraws other : {AugmentDraws{.seed = 9, .round = 2, .node = 3, .step = 4},
                               AugmentDraws{.seed = 1, .round = 9, .node = 3, .step = 4},
                               AugmentDraws{.seed = 1, .round = 2, .node = 9, .step = 4},
                               AugmentDraws{.seed = 1, .round = 2, .node = 3, .step = 9}}) {
        auto drawn = augmented_images(12);
        augment(list, shape, other, drawn);
        CHECK(drawn != whole);
    }
}

TEST_CASE("normalising is by channel, and is no choice", "[unit][augment]") {
    std::vector<float> values{1, 10, 3, 30};
    normalise(steps({"normalise 1,10 2,20"}), 2, values);
    CHECK(values == std::vector<float>{0, 0, 1, 1});
    auto untouched = values;
    augment(steps({"normalise 5 2"}), shape, draws, values);
    CHECK(values == untouched);
    CHECK_FALSE(draws_anything(steps({"normalise 5 2"})));
}

TEST_CASE("steps that do not fit the examples are told before anything is read", "[unit][augment]") {
    CHECK(augment_fault(steps({"flip"}), std::vector<std::int64_t>{64}).find("images") != std::string::npos);
    CHECK(augment_fault(steps({"crop 3"}), shape).find("out of sight") != std::string::npos);
    CHECK(augment_fault(steps({"normalise 1,2,3 1,1,1"}), shape).find("3 channels") != std::string::npos);
    CHECK(augment_fault(steps({"crop 2", "flip", "normalise 1,2 1,1"}), shape).empty());
    CHECK(augment_fault(steps({"normalise 1,2,3 1,1,1"}), std::vector<std::int64_t>{3}).empty());  // columns of a table
}

TEST_CASE("categories, missing values and augmentations travel as text", "[unit][options]") {
    DataOptions options;
    options.shape = {8, 8, 3};
    options.categories = {{"se x", {"f", "m,n", ""}}, {"3", {"a;b"}}};
    options.missing = {MissingRule::Kind::number, -1.5};
    options.augment = steps({"crop 2", "normalise 0.5,0.25,0 1,2,4"});
    const auto text = to_text(options);
    const auto read = parse_data_options(text);
    REQUIRE(read);
    CHECK(*read == options);
    CHECK(to_text(*read) == text);
    CHECK_FALSE(parse_data_options("categories=a"));
    CHECK_FALSE(parse_data_options("categories=a:x,x"));
    CHECK_FALSE(parse_data_options("categories=a:x;a:y"));
    CHECK_FALSE(parse_data_options("missing=never"));
    CHECK_FALSE(parse_data_options("augment=rotate"));
    CHECK_FALSE(parse_data_options("augment=flip,flip,flip,flip,flip"));
    CHECK_FALSE(parse_data_options("shape=8 augment=flip"));
}

}  // namespace causeway
