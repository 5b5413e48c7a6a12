// The registry: every codec is found by each of its names, and what is unknown is refused with a way out.
#include <catch2/catch.hpp>

#include <bit>
#include <limits>

#include "compression/codec.h"

namespace causeway {

TEST_CASE("every codec answers to its name and its aliases, and its text parses to itself", "[unit][codec]") {
    for (const auto& entry : codec_entries()) {
        auto names = entry.aliases;
        names.push_back(entry.name);
        for (const auto name : names) {
            CAPTURE(name);
            const auto codec = parse_codec(name);
            REQUIRE(codec);
            CHECK(codec->fidelity == entry.fidelity);
            CHECK(parse_codec(codec->text)->text == codec->text);
        }
        CHECK_FALSE(entry.summary.empty());
    }
}

TEST_CASE("none is another name of dense, which loses nothing", "[unit][codec]") {
    CHECK(parse_codec("none")->text == "dense");
    CHECK(parse_codec("  dense ")->text == "dense");
    CHECK(parse_codec("dense")->fidelity == Fidelity::lossless);
}

TEST_CASE("an unknown or misspelt codec is refused, with the nearest name", "[unit][codec]") {
    const auto misspelt = parse_codec("dens");
    REQUIRE_FALSE(misspelt);
    CHECK(misspelt.error().kind == ErrorKind::invalid);
    CHECK(misspelt.error().code == "unknown_codec");
    CHECK(misspelt.error().message.find("dense") != std::string::npos);
    CHECK(parse_codec("").error().code == "unknown_codec");
    CHECK(parse_codec("dense 4").error().code == "codec_arguments");
}

TEST_CASE("dense gives back every bit, also of NaN, infinity, zero's sign and denormals", "[unit][codec]") {
    const auto codec = *parse_codec("dense");
    UpdatePart part;
    part.values = {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), -0.0f,
                   std::numeric_limits<float>::denorm_min(), 1.5f};
    part.ranges = RangeSet::all(part.values.size());
    Bytes payload;
    codec.encode(part, payload);
    UpdatePart back;
    back.ranges = part.ranges;
    REQUIRE(codec.decode(payload, back));
    REQUIRE(back.values.size() == part.values.size());
    for (std::size_t i = 0; i < part.values.size(); ++i) {
        CHECK(std::bit_cast<std::uint32_t>(back.values[i]) == std::bit_cast<std::uint32_t>(part.values[i]));
    }
}

TEST_CASE("dense refuses a payload of any other size than its ranges ask for", "[unit][codec]") {
    const auto codec = *parse_codec("dense");
    UpdatePart part;
    part.ranges = RangeSet::all(4);
    for (std::size_t size = 0; size < 40; ++size) {
        CAPTURE(size);
        const auto status = codec.decode(Bytes(size), part);
        CHECK(status.has_value() == (size == 16));
        CHECK((status || status.error().code == "payload_size"));
    }
}

}  // namespace causeway
