// Measurements of a federation as a plan's links and speeds: what is known is used, what is not is named.
#include "cli/plan_measured.h"

#include <catch2/catch.hpp>

namespace causeway::cli {
namespace {

constexpr const char* measured = R"json({
  "nodes": {
    "north": {"round_trip_seconds": 0.04, "uplink": 250000, "downlink": 1000000,
              "work": {"experiment": 3, "layers": "[0, 3)", "examples": 100, "seconds": 2.0}},
    "south": {"round_trip_seconds": 0.01, "uplink": null, "downlink": 2000000, "work": null},
    "host-1": {"round_trip_seconds": 0.002, "uplink": 5000000, "downlink": 7000000,
               "work": {"experiment": 3, "layers": "[3, 9)", "examples": 100, "seconds": 3.0}},
    "host-2": {"uplink": 4000000, "work": {"experiment": 3, "layers": "[3, 9)", "examples": 100, "seconds": 1.0}}},
  "experiments": {"3": {"architecture": "of three", "optimizer": "sgd", "batch": 32}}})json";

PlanCast cast_of(const std::vector<std::string>& names) {
    PlanCast cast;
    for (const auto& name : names) {
        cast.clients.push_back({.name = name, .uplink = 1, .downlink = 2, .delay = 3, .slowness = 4, .examples = 5});
    }
    return cast;
}

/// A hundredth of a second an example, whatever the layers.
Result<double> here(const Json& experiment, const std::string& layers) {
    CHECK(experiment["architecture"].text() == "of three");
    CHECK_FALSE(layers.empty());
    return 0.01;
}

}  // namespace

TEST_CASE("what was measured of a client is used, and what was not keeps the assumption and is named",
          "[cli][plan]") {
    auto cast = cast_of({"elsewhere", "north", "south"});
    REQUIRE(use_measurements(*Json::parse(measured), {}, here, cast));
    CHECK(cast.clients[0] == cast_of({"elsewhere"}).clients[0]);
    CHECK(cast.clients[1] == PlanClient{"north", 250000, 1000000, 0.02, 2.0, 5});
    CHECK(cast.clients[2] == PlanClient{"south", 1, 2000000, 0.005, 4, 5});
    CHECK(cast.assumed == std::map<std::string, std::vector<std::string>>{
                              {"elsewhere", {"uplink", "downlink", "delay", "speed"}}, {"south", {"uplink", "speed"}}});
}

TEST_CASE("of several hosts the slowest counts, and one that was never measured is named", "[cli][plan]") {
    auto cast = cast_of({"north"});
    REQUIRE(use_measurements(*Json::parse(measured), {"host-1", "host-2", "host-3"}, here, cast));
    CHECK(cast.host.slowness == Approx(3));
    CHECK(cast.host.uplink == 4000000);
    CHECK(cast.host.downlink == 7000000);
    CHECK(cast.host.delay == Approx(0.001));
    CHECK(cast.assumed == std::map<std::string, std::vector<std::string>>{{"host-3", {"speed", "uplink"}}});
}

TEST_CASE("a time of this machine for an example is that of its layers, and nonsense is an error", "[cli][plan]") {
    const auto chain = Chain::parse({"dense 64", "relu", "dense 4"}, {32}, "cross-entropy");
    REQUIRE(chain);
    const auto work = Json::object()
                          .set("architecture", chain->architecture())
                          .set("optimizer", "sgd learning_rate=0.1")
                          .set("batch", 16);
    const auto seconds = seconds_on_this_machine();
    const auto all = seconds(work, "");
    const auto first = seconds(work, "[0, 1)");
    const auto rest = seconds(work, "[1, 3)");
    REQUIRE((all && first && rest));
    CHECK(*first > 0);
    CHECK(*first + *rest == Approx(*all));
    CHECK_FALSE(seconds(work, "[0, 9)"));
    CHECK_FALSE(seconds(Json::object().set("architecture", "none"), ""));
}

}  // namespace causeway::cli
