// See own_addresses.h.
#include "wire/own_addresses.h"

#include <algorithm>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

namespace causeway {
namespace {

/// HOST:PORT or [IPV6]:PORT, not a bare IPv6 address.
bool names_port(const std::string& text) {
    return text.find(']') != std::string::npos ? text.find("]:") != std::string::npos
                                               : std::ranges::count(text, ':') == 1;
}

enum class Families { all, v4_only };

/// Addresses that another machine could use: up, no loopback, no link-local.
std::vector<std::string> global_hosts(Families families) {
    std::vector<std::string> hosts;
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) {
        return hosts;
    }
    for (const auto* item = list; item != nullptr; item = item->ifa_next) {
        if (item->ifa_addr == nullptr || (item->ifa_flags & IFF_UP) == 0 || (item->ifa_flags & IFF_LOOPBACK) != 0) {
            continue;
        }
        char text[INET6_ADDRSTRLEN] = {};
        if (item->ifa_addr->sa_family == AF_INET) {
            const auto* v4 = reinterpret_cast<const sockaddr_in*>(item->ifa_addr);
            hosts.emplace_back(::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text));
        } else if (item->ifa_addr->sa_family == AF_INET6 && families == Families::all) {
            const auto* v6 = reinterpret_cast<const sockaddr_in6*>(item->ifa_addr);
            if (!IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) {
                hosts.emplace_back(::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text));
            }
        }
    }
    ::freeifaddrs(list);
    return hosts;
}

}  // namespace

bool is_wildcard(const Address& address) {
    return address.host == "*" || address.host == "0.0.0.0" || address.host == "::";
}

Result<std::vector<Address>> own_addresses(const std::vector<std::string>& advertise, const Address& listen,
                                             std::uint16_t port) {
    std::vector<Address> addresses;
    for (const auto& text : advertise) {
        TRY_ASSIGN(auto address, parse_address(text));
        addresses.push_back({address.host, names_port(text) ? address.port : port});
    }
    if (!addresses.empty()) {
        return addresses;
    }
    if (!is_wildcard(listen)) {
        return std::vector{Address{listen.host, port}};
    }
    // 0.0.0.0 is every IPv4 address and no other; * and :: take both.
    for (auto& host : global_hosts(listen.host == "0.0.0.0" ? Families::v4_only : Families::all)) {
        addresses.push_back({std::move(host), port});
    }
    if (addresses.empty()) {
        addresses.push_back({"127.0.0.1", port});
    }
    return addresses;
}

}  // namespace causeway
