// What people see: nearest names, sizes, quoting.
#include "common/text.h"

#include <catch2/catch.hpp>

namespace causeway {

TEST_CASE("a misspelt name finds its nearest valid one, and a strange one none", "[common][unit]") {
    const std::vector<std::string> names{"rounds", "seed", "learning_rate"};
    CHECK(nearest_name("round", names) == "rounds");
    CHECK(nearest_name("learnin_rate", names) == "learning_rate");
    CHECK(nearest_name("sed", names) == "seed");
    CHECK_FALSE(nearest_name("zzz", names).has_value());
    CHECK_FALSE(nearest_name(std::string(100'000, 'a'), names).has_value());
}

TEST_CASE("sizes read as they are written", "[common][unit]") {
    CHECK(format_bytes(0) == "0 B");
    CHECK(format_bytes(999) == "999 B");
    CHECK(format_bytes(1234) == "1.23 KB");
    CHECK(format_bytes(999'600) == "1.00 MB");
    CHECK(format_bytes(12'345'678) == "12.3 MB");
    CHECK(parse_size("64 KiB") == 65536);
    CHECK(parse_size("1.5MB") == 1'500'000);
    CHECK_FALSE(parse_size("-1").has_value());
    CHECK_FALSE(parse_size("1e300").has_value());
    CHECK_FALSE(parse_size("5 parsecs").has_value());
}

TEST_CASE("a printed command can be pasted into a shell", "[common][unit]") {
    CHECK(shell_quoted("a/b-c.toml") == "a/b-c.toml");
    CHECK(shell_quoted("it's here") == "'it'\\''s here'");
    CHECK(shell_quoted("") == "''");
}

TEST_CASE("splitting, trimming and joining", "[common][unit]") {
    CHECK(split_text("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
    CHECK(trim("  x y\n") == "x y");
    CHECK(trim(" \t ").empty());
    CHECK(join(std::vector<std::string>{"a", "b"}, ", ") == "a, b");
}

}  // namespace causeway
