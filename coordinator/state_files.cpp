// Everything that is made once and then only read. Certificates of this machine are renewed at a start past two thirds
// of their life, for no session could do it while the daemon is down.
#include "coordinator/state_files.h"

#include <algorithm>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <fmt/format.h>

namespace causeway {
namespace {

namespace fs = std::filesystem;

Result<Authority> open_authority(const fs::path& folder, const std::string& federation, std::int64_t now_s) {
    if (auto known = load_authority(folder); known || known.error().kind != ErrorKind::not_found) {
        return known;
    }
    TRY(check_name(federation, "the federation's name"));
    TRY(make_private_folder(folder));
    TRY_ASSIGN(auto made, make_authority(federation, now_s));
    TRY(save_authority(folder, made));
    return made;
}

Result<bool> is_fresh(const Credentials& credentials, std::int64_t now_s) {
    TRY_ASSIGN(const auto facts, read_certificate(credentials.certificate));
    return now_s < facts.not_after_s - (facts.not_after_s - facts.not_before_s) / 3;
}

Result<Credentials> open_credentials(const fs::path& folder, const Authority& authority, Role role,
                                     const std::string& name, std::int64_t now_s) {
    auto known = load_credentials(folder);
    if (!known && known.error().kind != ErrorKind::not_found) {
        return known;
    }
    if (known) {
        TRY_ASSIGN(const auto fresh, is_fresh(*known, now_s));
        if (fresh) {
            return known;
        }
    }
    TRY(make_private_folder(folder));
    Credentials made{.identity = {authority.federation, role, name},
                     .key = known ? known->key : make_key(),
                     .authority_certificate = authority.certificate};
    TRY_ASSIGN(made.certificate, issue_certificate(authority, made.key.public_key, made.identity, now_s));
    TRY(save_credentials(folder, made));
    return made;
}

bool is_wildcard(const Address& address) {
    return address.host == "*" || address.host == "0.0.0.0" || address.host == "::";
}

/// HOST:PORT or [IPV6]:PORT, not a bare IPv6 address.
bool names_port(const std::string& text) {
    return text.find(']') != std::string::npos ? text.find("]:") != std::string::npos
                                               : std::ranges::count(text, ':') == 1;
}

/// Addresses that another machine could use: up, no loopback, no link-local.
std::vector<std::string> global_hosts() {
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
        } else if (item->ifa_addr->sa_family == AF_INET6) {
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

Result<StateFiles> open_state(const fs::path& state, const std::string& federation, std::int64_t now_s) {
    TRY(make_private_folder(state));
    TRY_ASSIGN(auto lock, FolderLock::acquire(state));
    TRY_ASSIGN(auto authority, open_authority(state / "ca", federation, now_s));
    TRY_ASSIGN(auto own, open_credentials(state / "coordinator", authority, Role::coordinator, "coordinator", now_s));
    TRY_ASSIGN(auto operator_, open_credentials(state / "operator", authority, Role::operator_, "operator", now_s));
    TRY(make_private_folder(state / "spool"));
    return StateFiles{std::move(lock), std::move(authority), std::move(own), std::move(operator_)};
}

Status write_operator_address(const fs::path& state, const Address& listen, std::uint16_t port) {
    const Address address{is_wildcard(listen) ? "127.0.0.1" : listen.host, port};
    return write_file_durably(state / "operator" / "address", as_bytes(address.text() + "\n"));
}

Result<std::vector<Address>> token_addresses(const std::vector<std::string>& advertise, const Address& listen,
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
    for (auto& host : global_hosts()) {
        addresses.push_back({std::move(host), port});
    }
    if (addresses.empty()) {
        addresses.push_back({"127.0.0.1", port});
    }
    return addresses;
}

}  // namespace causeway
