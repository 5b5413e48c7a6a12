// The head of an HTTP/1.1 request, read as its bytes come: all that `--http` understands of HTTP. Pure and total.
//
// Any bytes give a request, a status that says why not, or the wish for more; at most `longest_head` of them are kept.
// A request has no body here, so one that announces a body is refused, and what comes after the head is nobody's:
// each connection is for one request. source: RFC 9110, RFC 9112
// cost  each byte is looked at once
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace causeway {

struct HttpRequest {
    std::string method;
    std::string path;                 // without its query
    std::optional<std::string> host;  // as it was given, port included
};

class HttpRequestReader {
public:
    static constexpr std::size_t longest_head = 8192;  // a browser's, with the cookies of other pages of this machine
    static constexpr std::size_t most_fields = 64;

    enum class State { more, whole, refused };
    /// Adds what came. After `whole` or `refused` nothing is looked at any more.
    State read(std::string_view bytes);

    [[nodiscard]] State state() const { return state_; }
    [[nodiscard]] const HttpRequest& request() const { return request_; }
    /// Of `refused`: 400 no HTTP, 413 has a body, 431 too large, 505 another version.
    [[nodiscard]] int status() const { return status_; }

private:
    void end_line();
    void read_request_line();
    void read_field();
    void refuse(int status);

    State state_ = State::more;
    int status_ = 0;
    std::string line_;
    std::size_t bytes_ = 0;
    std::size_t fields_ = 0;
    bool first_ = true;
    HttpRequest request_;
};

}  // namespace causeway
