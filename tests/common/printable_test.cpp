// What of a peer's words reaches a screen.
#include <catch2/catch.hpp>

#include "common/printable.h"

namespace causeway {

TEST_CASE("words of others are shown without what would steer a terminal or forge a line", "[printable]") {
    CHECK(printable("M\u00fcller \u2603 \U0001F600", Lines::one) == "M\u00fcller \u2603 \U0001F600");
    CHECK(printable("\x1b]0;title\x07\x1b[2Jdone", Lines::one) == "?]0;title??[2Jdone");
    CHECK(printable("\u0080\u009b31m\u00a0", Lines::one) == "??31m\u00a0");
    CHECK(printable("\u202eterces\u2066\u2069\u2027", Lines::many) == "?terces??\u2027");
    CHECK(printable("one\ntwo\tthree\rfour\x7f", Lines::one) == "one two three four?");
    CHECK(printable("one\ntwo\tthree\rfour", Lines::many) == "one\ntwo\tthree four");
    CHECK(printable("\xe2\x80", Lines::one) == "\xe2\x80");  // cut: nobody's control character
    CHECK(printable(std::string_view("a\0b", 3), Lines::many) == "a?b");
}

}  // namespace causeway
