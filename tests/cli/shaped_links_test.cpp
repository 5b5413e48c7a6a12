// The proxy of `demo --link`: its arithmetic by hand, and that bytes come through a real one as they went in.
#include "cli/shaped_links.h"

#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace causeway::cli {
namespace {

using namespace std::chrono_literals;

int connect_to(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return fd;
}

/// Accepts one connection after another and sends back what comes, to its end.
struct Echo {
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    std::uint16_t port = 0;
    std::thread thread;

    Echo() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
        REQUIRE(::listen(fd, 8) == 0);
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
        port = ntohs(address.sin_port);
        thread = std::thread([this] {
            for (int peer = ::accept(fd, nullptr, nullptr); peer >= 0; peer = ::accept(fd, nullptr, nullptr)) {
                std::vector<char> buffer(4096);
                for (ssize_t got = ::read(peer, buffer.data(), buffer.size()); got > 0;
                     got = ::read(peer, buffer.data(), buffer.size())) {
                    for (ssize_t sent = 0; sent < got;) {
                        sent += ::write(peer, buffer.data() + sent, static_cast<std::size_t>(got - sent));
                    }
                }
                ::close(peer);
            }
        });
    }
    ~Echo() {
        ::shutdown(fd, SHUT_RDWR);
        thread.join();
        ::close(fd);
    }
};

std::string read_all(int fd) {
    std::string all;
    std::vector<char> buffer(4096);
    for (ssize_t got = ::read(fd, buffer.data(), buffer.size()); got > 0;
         got = ::read(fd, buffer.data(), buffer.size())) {
        all.append(buffer.data(), static_cast<std::size_t>(got));
    }
    ::close(fd);
    return all;
}

}  // namespace

TEST_CASE("a line takes its rate and its delay, and hands on in order", "[cli][unit]") {
    ShapedLine line({.delay = 20ms, .rate = 1000}, {}, {.purpose = "test"});
    CHECK(line.room_at() <= 0s);
    CHECK(line.take(1s, 100) == 1s + 100ms + 20ms);
    CHECK(line.take(1s, 50) == 1s + 150ms + 20ms);  // behind the first
    CHECK(line.room_at() == 1s + 150ms - ShapedLine::queue_time);
    CHECK(line.take(5s, 10) == 5s + 10ms + 20ms);  // the line was idle
}

TEST_CASE("jitter delays by at most what it says, follows from the seed, and never reorders", "[cli][property]") {
    const simulation::Way way{.delay = 10ms, .rate = 1e6};
    ShapedLine one(way, 5ms, {.seed = 3, .purpose = "test"}), again(way, 5ms, {.seed = 3, .purpose = "test"});
    ShapedLine other(way, 5ms, {.seed = 4, .purpose = "test"});
    Instant last{};
    bool differs = false;
    for (Instant now{}; now < 1s; now += 7ms) {
        const auto due = one.take(now, 10);
        REQUIRE(due >= now + 10ms);
        REQUIRE(due <= now + 10ms + 10us + 5ms);
        REQUIRE(due >= last);
        REQUIRE(due == again.take(now, 10));
        differs = differs || due != other.take(now, 10);
        last = due;
    }
    CHECK(differs);
}

TEST_CASE("bytes go through a shaped link both ways as they are, to the end of the connection", "[cli][e2e]") {
    Echo echo;
    const simulation::ShapedLink link{{{.delay = 1ms, .rate = 4e6}, {.delay = 1ms, .rate = 8e6}}, 1ms};
    const auto links = ShapedLinks::start({link}, {{0, {"127.0.0.1", echo.port}}}, 1);
    REQUIRE(links.has_value());
    std::string sent;
    for (int i = 0; i < 100'000; ++i) {
        sent += std::to_string(i);
    }
    const int fd = connect_to((*links)->port(0));
    const Instant begun = real_now();
    std::thread writer([&] {
        for (std::size_t at = 0; at < sent.size();) {
            at += static_cast<std::size_t>(::write(fd, sent.data() + at, sent.size() - at));
        }
        ::shutdown(fd, SHUT_WR);
    });
    const bool same = read_all(fd) == sent;
    writer.join();
    CHECK(same);
    // Never faster than the line, however fast this machine is.
    CHECK(seconds(real_now() - begun) >= static_cast<double>(sent.size()) / 4e6);
}

TEST_CASE("a shaped link to nobody closes, and others go on", "[cli][e2e]") {
    Echo echo;
    const simulation::ShapedLink plain{simulation::both_ways(1ms, 1e6), {}};
    const auto links = ShapedLinks::start({plain, plain}, {{0, {"127.0.0.1", 1}}, {1, {"127.0.0.1", echo.port}}}, 1);
    REQUIRE(links.has_value());
    CHECK(read_all(connect_to((*links)->port(0))).empty());
    const int fd = connect_to((*links)->port(1));
    REQUIRE(::write(fd, "there", 5) == 5);
    ::shutdown(fd, SHUT_WR);
    CHECK(read_all(fd) == "there");
    CHECK_FALSE(ShapedLinks::start({plain}, {{0, {"example.org", 80}}}, 1).has_value());
}

TEST_CASE("a line that falls silent ends nothing and lets nothing through, and others go on", "[cli][e2e]") {
    Echo cut, kept;
    const simulation::ShapedLink plain{simulation::both_ways(1ms, 1e6), {}};
    const auto links =
        ShapedLinks::start({plain, plain}, {{0, {"127.0.0.1", cut.port}}, {1, {"127.0.0.1", kept.port}}}, 1);
    REQUIRE(links.has_value());
    const int silent = connect_to((*links)->port(0)), other = connect_to((*links)->port(1));
    const auto there_and_back = [](int fd) {
        char letter = 'a';
        return ::write(fd, &letter, 1) == 1 && ::read(fd, &letter, 1) == 1 && letter == 'a';
    };
    REQUIRE(there_and_back(silent));
    (*links)->silence(0);
    REQUIRE(::write(silent, "b", 1) == 1);
    for (int i = 0; i < 3; ++i) {  // what was sent earlier over an equal line would be back by now
        REQUIRE(there_and_back(other));
    }
    char letter = 0;
    CHECK(::recv(silent, &letter, 1, MSG_DONTWAIT) == -1);
    CHECK(errno == EAGAIN);
    ::close(silent);
    ::close(other);
}

}  // namespace causeway::cli
