// What reaches stderr: no text can pass for a line that the program has written.
#include <catch2/catch.hpp>

#include <array>
#include <string>

#include <unistd.h>

#include "common/log.h"

namespace causeway {

TEST_CASE("a text of several lines is set in, and cannot look like a line of its own", "[log]") {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const int own = ::dup(STDERR_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    log_warn("link", "first\nsecond");
    ::dup2(own, STDERR_FILENO);
    std::array<char, 512> read{};
    const auto size = ::read(ends[0], read.data(), read.size());
    for (const int end : {own, ends[0], ends[1]}) {
        ::close(end);
    }
    REQUIRE(size > 0);
    const std::string text(read.data(), static_cast<std::size_t>(size));
    CHECK(text.find("link: first\n    second\n") != std::string::npos);
}

}  // namespace causeway
