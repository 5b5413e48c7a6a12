// Profiles with their mistakes, and choices written into experiment files as a person would write them.
#include "cli/plan_profile.h"

#include <catch2/catch.hpp>

#include "configs/reader.h"

namespace causeway::cli {

using Catch::Contains;

namespace {

constexpr auto commented = R"(# My experiment.
[experiment]
name = "mine"

[data]
dataset = "digits"
shape = [8, 8, 1]

[model]
layers = ["conv 4 3x3", "relu", "maxpool 2", "flatten", "dense 10"]   # small

[regime]
preset = "fedavg"         # may change
# cut = "relu"

[sync]
quorum = "50%"            # half
)";

std::string applied(const std::string& text, const std::string& preset, const std::string& cut, std::uint32_t groups) {
    const auto written = with_regime(text, "mine.toml", preset, cut, groups);
    CAPTURE(written ? *written : written.error().message);
    REQUIRE(written.has_value());
    return *written;
}

}  // namespace

TEST_CASE("a profile gives clients, a host and their rates", "[cli][plan]") {
    const auto cast = parse_profile(R"([host]
speed = "0.5x"
uplink = "1gbit"
downlink = "400mbit"
delay = "2ms"
memory = "8GB"
[[client]]
name = "north"
uplink = "2mbit"
downlink = "8mbit"
delay = "20ms"
speed = "10x"
examples = 300
[[client]]
name = "south"
uplink = "16mbit"
)",
                                    "p.toml");
    CAPTURE(cast ? "" : cast.error().message);
    REQUIRE(cast.has_value());
    CHECK(cast->host.slowness == 0.5);
    CHECK(cast->host.uplink == 125e6);
    CHECK(cast->host.downlink == 50e6);
    CHECK(cast->host.delay == Approx(0.002));
    CHECK(cast->host.memory == 8'000'000'000);
    REQUIRE(cast->clients.size() == 2);
    CHECK(cast->clients[0] == PlanClient{"north", 250e3, 1e6, 0.02, 10, 300});
    CHECK(cast->clients[1].downlink == 2e6);
    CHECK(cast->clients[1].slowness == 1);
}

TEST_CASE("every mistake of a profile is told at its place", "[cli][plan]") {
    const auto cast = parse_profile(R"([hots]
speed = "1x"
[[client]]
uplink = "2mb"
sped = "10x"
speed = 10
examples = -1
)",
                                    "p.toml");
    REQUIRE_FALSE(cast.has_value());
    CHECK(cast.error().code == "bad_profile");
    const auto& message = cast.error().message;
    CHECK_THAT(message, Contains("p.toml:1:") && Contains("\"hots\" is not [host] or [[client]]"));
    CHECK_THAT(message, Contains("lacks name") && Contains("p.toml:4:10") && Contains("10mbit"));
    CHECK_THAT(message, Contains("p.toml:5:1") && Contains("did you mean \"speed\""));
    CHECK_THAT(message, Contains("p.toml:6:9") && Contains("p.toml:7:12"));
    CHECK_THAT(parse_profile("", "p.toml").error().message, Contains("[[client]] for each client"));
    CHECK_THAT(parse_profile("[host]\nspeed = = 1", "p.toml").error().message, Contains("TOML syntax"));
}

TEST_CASE("a choice is written into [regime], and everything else stays as it was", "[cli][plan]") {
    const auto text = applied(commented, "gsfl", "maxpool", 3);
    CHECK_THAT(
        text,
        Contains(
            "preset = \"gsfl\"           # may change\n# cut = \"relu\"\ncut = \"maxpool\"\ngroups = 3\n\n[sync]"));
    CHECK_THAT(text, Contains("# My experiment.\n") && Contains("# small\n") &&
                         Contains("quorum = \"50%\"            # half\n"));
    const auto read = read_experiment(text, "mine.toml");
    REQUIRE(read.has_value());
    CHECK(read->regime.groups == 3);

    const auto split = applied(text, "split", "relu", 0);
    CHECK_THAT(split, Contains("cut = \"relu\"\n\n[sync]") && !Contains("groups"));
    const auto back = applied(split, "fedavg", "", 0);
    CHECK_THAT(back, Contains("preset = \"fedavg\"") && Contains("# cut = \"relu\"") && !Contains("\ncut ="));
    CHECK(applied(applied(commented, "gsfl", "maxpool", 3), "gsfl", "maxpool", 3) == text);
}

TEST_CASE("a file without [regime] gets one, and a form that cannot be edited is refused", "[cli][plan]") {
    std::string bare = commented;
    const auto begin = bare.find("[regime]");
    bare.erase(begin, bare.find("[sync]") - begin);
    CHECK_THAT(applied(bare, "splitfed-v1", "conv", 0),
               Contains("# half\n\n[regime]\npreset = \"splitfed-v1\"\ncut = \"conv\"\n"));
    auto braces = bare;
    braces.insert(0, "regime = { preset = \"fedavg\" }\n");
    CHECK(with_regime(braces, "mine.toml", "gsfl", "maxpool", 2).error().code == "cannot_apply");
    const auto few = std::string(commented) + "min_clients = 2\n";
    const auto refused = with_regime(few, "mine.toml", "gsfl", "maxpool", 4);
    REQUIRE_FALSE(refused.has_value());
    CHECK_THAT(refused.error().message, Contains("nothing was written") && Contains("at least 4 clients"));
}

}  // namespace causeway::cli
