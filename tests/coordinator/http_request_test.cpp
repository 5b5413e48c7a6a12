// What `--http` takes for a request: all of it, in whatever pieces it comes, and everything else by a status.
#include <catch2/catch.hpp>

#include "coordinator/http_request.h"

namespace causeway {
namespace {

using State = HttpRequestReader::State;

HttpRequestReader read_in_pieces(std::string_view text, std::size_t piece) {
    HttpRequestReader reader;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        reader.read(text.substr(at, piece));
    }
    return reader;
}

/// 0: wants more; 200: whole.
int outcome(std::string_view text) {
    const auto reader = read_in_pieces(text, text.size());
    const auto bytewise = read_in_pieces(text, 1);
    CHECK(reader.state() == bytewise.state());
    CHECK(reader.status() == bytewise.status());
    return reader.state() == State::more ? 0 : reader.state() == State::whole ? 200 : reader.status();
}

std::string fields(std::size_t count) {
    std::string text = "GET / HTTP/1.1\r\n";
    for (std::size_t i = 0; i < count; ++i) {
        text += "x: y\r\n";
    }
    return text + "\r\n";
}

}  // namespace

TEST_CASE("a request's method, path and host are read, its query and what follows it are not", "[http]") {
    const auto reader = read_in_pieces(
        "GET /metrics?name[]=x HTTP/1.1\r\nhOsT: \t localhost:9400 \r\nCookie: a=b\r\nAccept: \xc3\xa9\r\n\r\nGET / "
        "more",
        7);
    REQUIRE(reader.state() == State::whole);
    CHECK(reader.request().method == "GET");
    CHECK(reader.request().path == "/metrics");
    CHECK(reader.request().host == "localhost:9400");
}

TEST_CASE("older clients, lines that end with LF alone and one empty line before are understood", "[http]") {
    CHECK(outcome("GET / HTTP/1.0\r\n\r\n") == 200);
    CHECK(outcome("GET / HTTP/1.1\nHost: a\n\n") == 200);
    CHECK(outcome("\r\nGET / HTTP/1.1\r\n\r\n") == 200);
    CHECK(outcome("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n") == 200);
    CHECK(read_in_pieces("GET / HTTP/1.1\r\n\r\n", 3).request().host == std::nullopt);
}

TEST_CASE("a request that is not whole yet asks for more", "[http]") {
    const std::string whole = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CHECK(outcome(whole.substr(0, size)) == 0);
    }
}

TEST_CASE("what is no HTTP is refused at its first wrong byte or line", "[http]") {
    CHECK(outcome(std::string_view("\x16\x03\x01\x02\x00\x01", 6)) == 400);  // TLS
    CHECK(outcome("GET /\r\n") == 400);
    CHECK(outcome("GET  / HTTP/1.1\r\n") == 400);
    CHECK(outcome("GET / HTTP/1.1 \r\n") == 400);
    CHECK(outcome("G(T / HTTP/1.1\r\n") == 400);
    CHECK(outcome("GET /\xff HTTP/1.1\r\n") == 400);
    CHECK(outcome("GET / HTTP/1.1\r\nno colon\r\n") == 400);
    CHECK(outcome("GET / HTTP/1.1\r\nspace : x\r\n") == 400);
    CHECK(outcome("GET / HTTP/1.1\r\na: b\r\n goes on\r\n") == 400);
    CHECK(outcome("GET / HTTP/1.1\r\na: b\rc\r\n") == 400);
    CHECK(outcome("\r\n\r\n") == 400);
    CHECK(outcome("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n") == 400);
    CHECK(outcome(std::string_view("GET / HTTP/1.1\r\na: \0\r\n", 21)) == 400);
    CHECK(outcome("PRI * HTTP/2.0\r\n") == 505);
}

TEST_CASE("a body is refused however it is announced", "[http]") {
    CHECK(outcome("GET / HTTP/1.1\r\nContent-Length: 1\r\n") == 413);
    CHECK(outcome("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n") == 413);
    CHECK(outcome("GET / HTTP/1.1\r\nContent-Length: 0, 0\r\n") == 413);
    CHECK(outcome("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n") == 413);
}

TEST_CASE("a head that is too long is refused where its limit is, however it is long", "[http]") {
    constexpr auto limit = HttpRequestReader::longest_head;
    CHECK(outcome(std::string(limit, 'A')) == 0);
    CHECK(outcome(std::string(limit + 1, 'A')) == 431);
    CHECK(outcome("GET / HTTP/1.1\r\na: " + std::string(limit, 'b')) == 431);
    CHECK(outcome("GET /" + std::string(limit, 'b') + " HTTP/1.1\r\n") == 431);
    CHECK(outcome(fields(HttpRequestReader::most_fields)) == 200);
    CHECK(outcome(fields(HttpRequestReader::most_fields + 1)) == 431);
}

}  // namespace causeway
