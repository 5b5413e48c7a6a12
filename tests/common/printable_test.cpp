// What of a peer's words reaches a screen.
#include <catch2/catch.hpp>

#include <cstring>

#include "common/json.h"
#include "common/printable.h"

namespace causeway {

TEST_CASE("words of others are shown without what would steer a terminal or forge a line", "[printable]") {
    CHECK(printable("M\u00fcller \u2603 \U0001F600", Lines::one) == "M\u00fcller \u2603 \U0001F600");
    CHECK(printable("\x1b]0;title\x07\x1b[2Jdone", Lines::one) == "?]0;title??[2Jdone");
    CHECK(printable("\u0080\u009b31m\u00a0", Lines::one) == "??31m\u00a0");
    CHECK(printable("\u202eterces\u2066\u2069\u2027", Lines::many) == "?terces??\u2027");
    CHECK(printable("one\ntwo\tthree\rfour\x7f", Lines::one) == "one two three four?");
    CHECK(printable("one\ntwo\tthree\rfour", Lines::many) == "one\ntwo\tthree four");
    CHECK(printable("\xe2\x80", Lines::one) == "??");
    CHECK(printable(std::string_view("a\0b", 3), Lines::many) == "a?b");
}

TEST_CASE("what is not UTF-8 is not shown, nor what ends a line or turns writing by another name", "[printable]") {
    for (const auto* bytes : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe0\x80\x80", "\x80", "\xc3"}) {
        for (const auto lines : {Lines::one, Lines::many}) {
            CHECK(printable(std::string("a") + bytes + "b", lines) == "a" + std::string(std::strlen(bytes), '?') + "b");
        }
    }
    for (const auto lines : {Lines::one, Lines::many}) {
        CHECK(printable("a\u2028b\u2029c\u0085d", lines) == "a b c d");
        CHECK(printable("\u061c\u200e\u200f\u202a\u202e\u2066\u2069", lines) == "???????");
    }
    CHECK(printable("\U0010ffff\u00e9", Lines::one) == "\U0010ffff\u00e9");
}

TEST_CASE("a JSON text holds nothing that steers, and the same values", "[printable]") {
    const std::string text = "\x1b[2J\u2028\u202e\u009b\x7f\n\u00e9";
    const auto written = Json::object().set(text, text).dump();
    CHECK(written.find_first_of("\x1b\n\x7f") == std::string::npos);
    CHECK(printable(written, Lines::one) == written);
    CHECK((*Json::parse(written))[text].text() == text);
}

}  // namespace causeway
