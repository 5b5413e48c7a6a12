// See http_request.h.
#include "coordinator/http_request.h"

#include <algorithm>
#include <cctype>

namespace causeway {
namespace {

bool is_http_token(std::string_view text) {
    constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::ranges::all_of(text, [&](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               marks.find(c) != std::string_view::npos;
    });
}

/// What a line may hold: visible characters, spaces and tabs, and the bytes above ASCII that fields may carry.
bool may_stand_in_a_line(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t' || c == '\r';
}

std::string ascii_lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    return result;
}

std::string_view without_blanks(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t");
    return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

}  // namespace

HttpRequestReader::State HttpRequestReader::read(std::string_view bytes) {
    for (const char c : bytes) {
        if (state_ != State::more) {
            break;
        }
        if (++bytes_ > longest_head) {
            refuse(431);
        } else if (c == '\n') {
            end_line();
        } else if (!may_stand_in_a_line(c)) {
            refuse(400);
        } else {
            line_ += c;
        }
    }
    return state_;
}

/// A line ends with CR LF, or with LF alone, as a receiver may take it (RFC 9112, 2.2).
void HttpRequestReader::end_line() {
    if (line_.ends_with('\r')) {
        line_.pop_back();
    }
    if (line_.find('\r') != std::string::npos) {
        return refuse(400);
    }
    if (first_) {
        read_request_line();
    } else if (line_.empty()) {
        state_ = State::whole;
    } else {
        read_field();
    }
    line_.clear();
}

/// METHOD SP TARGET SP HTTP/1.x; one empty line before it is passed over (RFC 9112, 2.2).
void HttpRequestReader::read_request_line() {
    if (line_.empty() && bytes_ <= 2) {
        return;
    }
    const auto first = line_.find(' ');
    const auto second = first == std::string::npos ? first : line_.find(' ', first + 1);
    if (second == std::string::npos) {
        return refuse(400);
    }
    const auto target = std::string_view(line_).substr(first + 1, second - first - 1);
    const auto version = std::string_view(line_).substr(second + 1);
    const auto plain = [](char c) { return c > 0x20 && c < 0x7f; };
    request_.method = line_.substr(0, first);
    request_.path = std::string(target.substr(0, target.find('?')));
    first_ = false;
    if (!is_http_token(request_.method) || target.empty() || !std::ranges::all_of(target, plain) ||
        version.size() != 8 || !version.starts_with("HTTP/")) {
        return refuse(400);
    }
    if (version != "HTTP/1.1" && version != "HTTP/1.0") {
        refuse(505);
    }
}

void HttpRequestReader::read_field() {
    if (++fields_ > most_fields) {
        return refuse(431);
    }
    const auto colon = std::min(line_.find(':'), line_.size());
    const auto name = ascii_lower(std::string_view(line_).substr(0, colon));
    if (colon == line_.size() || !is_http_token(name)) {  // a line that goes on another (obs-fold) is none either
        return refuse(400);
    }
    const auto value = without_blanks(std::string_view(line_).substr(colon + 1));
    if (name == "host") {
        if (request_.host) {
            return refuse(400);
        }
        request_.host = std::string(value);
    } else if (name == "transfer-encoding" || (name == "content-length" && value != "0")) {
        refuse(413);
    }
}

void HttpRequestReader::refuse(int status) {
    state_ = State::refused;
    status_ = status;
    line_.clear();
}

}  // namespace causeway
