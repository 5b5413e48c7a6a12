// JSON round trips, limits on what a peer may send, and the order of fields.
#include "common/json.h"

#include <catch2/catch.hpp>

namespace causeway {

TEST_CASE("JSON keeps the order of fields and comes back as it went", "[common][unit]") {
    const auto value = Json::object()
                           .set("z", 1)
                           .set("a", Json::array().push(0.1).push("é\n\"").push(nullptr).push(true))
                           .set("big", std::int64_t{1} << 60);
    const std::string text = value.dump();
    CHECK(text == "{\"z\":1,\"a\":[0.1,\"é\\n\\\"\",null,true],\"big\":1152921504606846976}");
    CHECK(Json::parse(text)->dump() == text);
    CHECK(value["a"].items()[0].number() == 0.1);
    CHECK(value["missing"]["deeper"].is_null());
}

TEST_CASE("JSON of a peer has limits on length and depth", "[common][unit]") {
    CHECK(Json::parse(std::string(1000, '[') + std::string(1000, ']')).error().code == "json_too_deep");
    CHECK(Json::parse("[1,2,3]", 3).error().code == "json_too_long");
    for (const auto* wrong : {"", "{", "{\"a\":}", "[1,]", "nul", "\"\xff\""}) {
        INFO(wrong);
        CHECK(Json::parse(wrong).error().code == "bad_json");
    }
    CHECK(Json::parse("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"")->is_text());
}

TEST_CASE("numbers that JSON cannot hold become null", "[common][unit]") {
    CHECK(Json(1.0 / 0.0).dump() == "null");
    CHECK(Json(0.0 / 0.0).dump() == "null");
    CHECK(Json(1.0).dump() == "1.0");
}

TEST_CASE("setting a field again replaces it", "[common][unit]") {
    auto value = Json::object();
    value.set("a", 1).set("b", 2).set("a", 3);
    CHECK(value.dump() == "{\"a\":3,\"b\":2}");
}

}  // namespace causeway
