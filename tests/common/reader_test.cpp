// A full pipe, a closed one and a file.
#include "common/reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

namespace causeway {

TEST_CASE("a line is not written where it would have to wait or nobody reads", "[unit]") {
    std::array<int, 2> pipe_ends{};
    REQUIRE(pipe(pipe_ends.data()) == 0);
    CHECK(takes_a_line(pipe_ends[1]));
    fcntl(pipe_ends[1], F_SETFL, O_NONBLOCK);
    const std::array<char, 4096> page{};
    while (write(pipe_ends[1], page.data(), page.size()) > 0) {
    }
    CHECK_FALSE(takes_a_line(pipe_ends[1]));
    std::array<char, 4096> read_back{};
    REQUIRE(read(pipe_ends[0], read_back.data(), read_back.size()) == 4096);
    CHECK(takes_a_line(pipe_ends[1]));
    close(pipe_ends[0]);
    CHECK_FALSE(takes_a_line(pipe_ends[1]));
    close(pipe_ends[1]);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(takes_a_line(nowhere));
    close(nowhere);
}

}  // namespace causeway
