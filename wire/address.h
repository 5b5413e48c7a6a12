// Where a node listens: host and port, as people write them ("host", "host:7400", "[::1]:7400", ":7400", "*").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace causeway {

constexpr std::uint16_t default_port = 7400;

struct Address {
    std::string host = "*";  // all addresses, IPv6 and IPv4
    std::uint16_t port = default_port;
    bool operator==(const Address&) const = default;
    /// "[::1]:7400"; an IPv6 host is bracketed.
    [[nodiscard]] std::string text() const;
};
/// errors  invalid `bad_address`
Result<Address> parse_address(std::string_view text);
/// Where a node or operator finds its coordinator: the file's HOST:PORT lines, at least one.
///
/// errors  those of the file; corrupt `bad_address`: a line that is none, or that is no place to connect to
Result<std::vector<Address>> read_addresses(const std::string& file);

}  // namespace causeway
