// The server of `--http` on a real loopback socket, with a loop that this test plays. Whole processes and their memory:
// tests/e2e/http_test.py.
#include <atomic>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "common/machine.h"
#include "coordinator/http.h"
#include "coordinator/http_connections.h"

namespace causeway {
namespace {

class Client {
public:
    explicit Client(std::uint16_t port) : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const timeval patience{20, 0};
        ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        REQUIRE(::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    }
    Client(Client&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Client(const Client&) = delete;
    ~Client() { ::close(descriptor_); }

    void say(std::string_view text) const { (void)!::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL); }
    void say_no_more() const { ::shutdown(descriptor_, SHUT_WR); }

    /// Until the server closes.
    [[nodiscard]] std::string hear() const {
        std::string all;
        char bytes[4096];
        for (ssize_t count = 0; (count = ::recv(descriptor_, bytes, sizeof bytes, 0)) > 0;) {
            all.append(bytes, static_cast<std::size_t>(count));
        }
        return all;
    }
    [[nodiscard]] std::string ask(std::string_view text) const {
        say(text);
        return hear();
    }

private:
    int descriptor_;
};

constexpr auto health = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

std::unique_ptr<HttpServer> start_http(HttpServer::Scrape scrape = [] { return CoordinatorMetrics{.version = "1"}; }) {
    auto server = HttpServer::start({"127.0.0.1", 0}, std::move(scrape));
    REQUIRE(server.has_value());
    return *std::move(server);
}

}  // namespace

TEST_CASE("both pages answer, to HEAD without their body, and others say what there is", "[http]") {
    const auto server = start_http();
    CHECK(Client(server->port()).ask(health).ends_with("\r\n\r\nok\n"));
    const auto metrics = Client(server->port()).ask("GET /metrics HTTP/1.1\r\nHost: [::1]:1\r\n\r\n");
    CHECK(metrics.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
    CHECK(metrics.find("causeway_build_info{version=\"1\"} 1") != std::string::npos);
    const auto head = Client(server->port()).ask("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(head.starts_with("HTTP/1.1 200 "));
    CHECK(head.find("Content-Length: 3\r\n") != std::string::npos);
    CHECK(head.ends_with("\r\n\r\n"));
    CHECK(Client(server->port()).ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 404 "));
}

TEST_CASE("a loop that does not answer is unhealthy, and is not asked for what is refused anyway", "[http]") {
    std::atomic<int> asked{0};
    const auto server = start_http([&asked]() -> std::optional<CoordinatorMetrics> {
        ++asked;
        return std::nullopt;
    });
    CHECK(Client(server->port()).ask("GET /healthz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403 "));
    CHECK(Client(server->port()).ask("POST /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 405 "));
    CHECK(Client(server->port()).ask("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 404 "));
    CHECK(asked == 0);
    CHECK(Client(server->port()).ask(health).starts_with("HTTP/1.1 503 "));
    CHECK(asked == 1);
}

TEST_CASE("one request a connection is answered: those behind it and bytes without end are thrown away", "[http]") {
    const auto server = start_http();
    const Client pipelining(server->port());
    const auto answer = pipelining.ask(std::string(health) + health + health);
    CHECK(answer.find("HTTP/1.1 200") == 0);
    CHECK(answer.find("HTTP/1.1", 1) == std::string::npos);
    const Client endless(server->port());
    CHECK(endless.ask(std::string(20'000, 'A')).starts_with("HTTP/1.1 431 "));
}

TEST_CASE("who says that it has no more to say is answered, if it has said a request", "[http]") {
    const auto server = start_http();
    const Client half_closed(server->port());
    half_closed.say(health);
    half_closed.say_no_more();
    CHECK(half_closed.hear().starts_with("HTTP/1.1 200 "));
    const Client silent(server->port());
    silent.say("GET /heal");
    silent.say_no_more();
    CHECK(silent.hear().empty());
}

TEST_CASE("a request that does not come is waited for no longer than its deadline", "[http]") {
    const auto server = start_http();
    const Client silent(server->port());
    CHECK(silent.hear().starts_with("HTTP/1.1 408 "));
}

TEST_CASE("thousands of connections that say nothing take a fixed number of descriptors, and health is answered",
          "[http]") {
    const auto server = start_http();
    const auto before = descriptors().open;
    constexpr std::size_t many = 3 * HttpConnections::most_connections;
    std::vector<Client> silent;
    for (std::size_t i = 0; i < many; ++i) {
        silent.emplace_back(server->port());
        silent.back().say("GET /healthz HT");
        if (i % 16 == 0) {
            CHECK(Client(server->port()).ask(health).ends_with("ok\n"));
        }
    }
    CHECK(Client(server->port()).ask(health).ends_with("ok\n"));
    CHECK(descriptors().open - before - many <= HttpConnections::most_connections);
}

TEST_CASE("an address that is taken or that is not this machine's own is refused by name", "[http]") {
    const auto server = start_http();
    const auto scrape = [] { return std::optional<CoordinatorMetrics>(); };
    const auto taken = HttpServer::start({"127.0.0.1", server->port()}, scrape);
    REQUIRE_FALSE(taken.has_value());
    CHECK(taken.error().code == "port_in_use");
    for (const auto* host : {"0.0.0.0", "", "*", "::", "127.example.org", "10.0.0.1"}) {
        const auto refused = HttpServer::start({host, 0}, scrape);
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error().code == "http_not_loopback");
    }
}

}  // namespace causeway
