// Addresses as text; a host with more than one colon is IPv6.
#include "wire/address.h"

#include <algorithm>
#include <charconv>

#include "common/file.h"
#include "common/text.h"

namespace causeway {
namespace {

constexpr std::size_t max_host_length = 253;  // of a DNS name
constexpr std::size_t max_address_file = 16 * 1024;

bool is_host_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_' || c == ':' || c == '%';
}

tl::unexpected<Error> bad_address(std::string_view text) {
    return fail(ErrorKind::invalid, "bad_address",
                "'" + std::string(text.substr(0, max_host_length)) +
                    "' is not an address: write HOST, HOST:PORT or [IPV6]:PORT");
}

}  // namespace

std::string Address::text() const {
    const bool bracketed = host.find(':') != std::string::npos;
    return (bracketed ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> parse_address(std::string_view text) {
    Address address;
    std::string_view host = text;
    std::string_view port;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos || (end + 1 < text.size() && text[end + 1] != ':')) {
            return bad_address(text);
        }
        host = text.substr(1, end - 1);
        port = end + 1 < text.size() ? text.substr(end + 1) : "";
    } else if (std::ranges::count(text, ':') == 1) {
        host = text.substr(0, text.find(':'));
        port = text.substr(text.find(':'));
    }
    if (!host.empty()) {
        address.host = host;
    }
    if (!port.empty()) {
        const auto digits = port.substr(1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
        if (error != std::errc() || end != digits.data() + digits.size()) {
            return bad_address(text);
        }
    }
    const bool valid = address.host == "*" ||
                       (address.host.size() <= max_host_length && std::ranges::all_of(address.host, is_host_character));
    return valid ? Result<Address>(std::move(address)) : bad_address(text);
}

Result<std::vector<Address>> read_addresses(const std::string& file) {
    TRY_ASSIGN(const auto text, read_file(file, max_address_file));
    std::vector<Address> addresses;
    for (const auto& line : split_text(trim(as_text(text)), '\n')) {
        auto address = parse_address(trim(line));
        if (!address || address->host == "*") {
            return fail(ErrorKind::corrupt, "bad_address",
                        file + " must hold one HOST:PORT of the coordinator per line: write it anew, or join again");
        }
        addresses.push_back(*std::move(address));
    }
    return addresses;
}

}  // namespace causeway
