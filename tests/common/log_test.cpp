// What reaches stderr: no text can pass for a line that the program has written, or steer what shows it.
#include <catch2/catch.hpp>

#include <array>
#include <string>

#include <unistd.h>

#include "common/log.h"
#include "common/printable.h"
#include "common/random.h"

namespace causeway {
namespace {

/// What is on stderr after it has been said.
std::string logged(std::string_view who, std::string_view text) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const int own = ::dup(STDERR_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    log_warn(who, text);
    ::dup2(own, STDERR_FILENO);
    std::array<char, 4096> read{};
    const auto size = ::read(ends[0], read.data(), read.size());
    for (const int end : {own, ends[0], ends[1]}) {
        ::close(end);
    }
    REQUIRE(size > 0);
    return {read.data(), static_cast<std::size_t>(size)};
}

}  // namespace

TEST_CASE("a text of several lines is set in, and cannot look like a line of its own", "[log]") {
    CHECK(logged("link", "first\nsecond").find("link: first\n    second\n") != std::string::npos);
    CHECK(logged("link\nloop", "a\tb").find("link loop: a b\n") != std::string::npos);
}

TEST_CASE("no line of the log holds a control character, whatever bytes a text has", "[log]") {
    RandomStream random({.seed = 12, .purpose = "log"});
    constexpr std::array<std::string_view, 12> pieces = {"\x1b[2J", "\n",   "\r\n",     "\u2028", "\u202e", "\u2066",
                                                         "\u009b",  "\xff", "\xe2\x80", "\x7f",   "\t",     "name"};
    for (int i = 0; i < 2000; ++i) {
        std::string text;
        for (auto count = random.below(12); count > 0; --count) {
            text += random.below(3) == 0 ? std::string(1, static_cast<char>(random.below(256)))
                                         : std::string(pieces.at(random.below(pieces.size())));
        }
        auto line = logged("link", text);
        line.pop_back();
        INFO("text " << i);
        REQUIRE(printable(line, Lines::many) == line);
        REQUIRE(line.find('\t') == std::string::npos);
        for (auto end = line.find('\n'); end != std::string::npos; end = line.find('\n', end + 1)) {
            REQUIRE(line.substr(end + 1, 4) == "    ");
        }
    }
}

}  // namespace causeway
