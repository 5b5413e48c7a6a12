// The options that travel inside an assignment: one text form, total parsing, every mistake at once.
#include <random>

#include <catch2/catch.hpp>

#include "data/data_options.h"

namespace causeway {
namespace {

std::string message_of(std::string_view text) {
    const auto options = parse_data_options(text);
    REQUIRE_FALSE(options);
    CHECK(options.error().kind == ErrorKind::invalid);
    return options.error().message;
}

DataOptions random_options(std::mt19937& random) {
    DataOptions options;
    for (unsigned i = 0; i < random() % 12; ++i) {
        options.label += static_cast<char>(random());
    }
    for (unsigned i = 0; i < random() % 5; ++i) {
        options.shape.push_back(1 + static_cast<std::int64_t>(random() % 20));
    }
    if (random() % 2 == 0) {
        std::normal_distribution<double> end(0, 1000);
        const double low = end(random);
        options.scale = Scale{{low, low + 1e-3 + std::abs(end(random))}, {end(random), end(random)}};
    }
    return options;
}

}  // namespace

TEST_CASE("the options of the digits have the documented text", "[data][unit]") {
    const DataOptions options{"last", {8, 8, 1}, Scale{{0, 16}, {0, 1}}};
    CHECK(to_text(options) == "label=last shape=8x8x1 scale=0..16->0..1");
    CHECK(parse_data_options("label=last shape=8x8x1 scale=0..16->0..1") == options);
    CHECK(parse_data_options("  scale=0..16->0..1 label=last  shape=8x8x1") == options);
    CHECK(to_text(DataOptions{}).empty());
    CHECK(parse_data_options("") == DataOptions{});
}

TEST_CASE("any options come back from their text", "[data][property]") {
    std::mt19937 random(11);
    for (int i = 0; i < 2000; ++i) {
        const auto options = random_options(random);
        CAPTURE(i, to_text(options));
        REQUIRE(check_data_options(options).empty());
        REQUIRE(parse_data_options(to_text(options)) == options);
    }
}

TEST_CASE("a scale is read as people write it", "[data][unit]") {
    CHECK(parse_scale("0..16 -> 0..1") == Scale{{0, 16}, {0, 1}});
    CHECK(parse_scale(" -1.5 .. 1e3->1..-1 ") == Scale{{-1.5, 1000}, {1, -1}});
    for (const auto* wrong : {"", "0..16", "0..16 -> ", "0..x -> 0..1", "16..0 -> 0..1", "0..16 -> 1..1",
                              "0..inf -> 0..1", "0..nan -> 0..1", "0..16 -> 0..1 -> 2..3", "5..5->0..1"}) {
        CAPTURE(wrong);
        const auto scale = parse_scale(wrong);
        REQUIRE_FALSE(scale);
        CHECK(scale.error().code == "scale");
    }
}

TEST_CASE("all mistakes in the options are reported at once", "[data][unit]") {
    const auto message = message_of("labl=last shape=8x0 scale=5..5->0..1 label=a label=b");
    CHECK_THAT(message, Catch::Contains("did you mean label?"));
    CHECK_THAT(message, Catch::Contains("0 is not a size"));
    CHECK_THAT(message, Catch::Contains("must ascend"));
    CHECK_THAT(message, Catch::Contains("label is given twice"));
    CHECK_THAT(message_of("colour=red"), Catch::Contains("known: label, shape, scale"));
}

TEST_CASE("a shape that no example can have is refused", "[data][unit]") {
    for (const auto* wrong : {"shape=", "shape=8x", "shape=8xx8", "shape=-1", "shape=99999999999999999999",
                              "shape=65536x65536", "shape=1x1x1x1x1x1x1x1x1", "shape=8 x8", "label=%4", "label=%zz"}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_data_options(wrong));
    }
    CHECK_FALSE(parse_data_options(std::string(100'000, 'a')));
    CHECK(check_data_options({std::string(1000, 'l'), {0}, Scale{{1, 0}, {0, 0}}}).size() == 4);
}

TEST_CASE("any bytes are options or an error", "[data][fuzz]") {
    std::mt19937 random(12);
    const std::string start = "label=a%20b shape=8x8x1 scale=0..16->0..1";
    for (int i = 0; i < 10'000; ++i) {
        auto text = start;
        for (unsigned edit = 0; edit <= random() % 6; ++edit) {
            text[random() % text.size()] = static_cast<char>(random() % 2 == 0 ? random() : start[random() % 40]);
        }
        CAPTURE(i, text);
        const auto options = parse_data_options(text);
        REQUIRE((!options || parse_data_options(to_text(*options)) == options));
    }
}

}  // namespace causeway
