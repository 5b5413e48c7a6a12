// Names and roles, and how they are spelt in a certificate. No cryptography here.
#include "wire/identity.h"

#include <algorithm>
#include <array>

#include "common/text.h"

namespace causeway {
namespace {

constexpr std::array<std::string_view, 5> role_names = {"coordinator", "operator", "client", "host", "aggregator"};
constexpr std::string_view scheme = "causeway://";
constexpr std::size_t max_name_length = 64;

bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string_view to_string(Role role) {
    return role_names[static_cast<std::size_t>(role)];
}

Result<Role> role_from(std::string_view name) {
    const auto found = std::ranges::find(role_names, name);
    if (found == role_names.end()) {
        return fail(ErrorKind::invalid, "unknown_role",
                    "no role is called '" + std::string(name.substr(0, max_name_length)) +
                        "': use client, host, aggregator or operator");
    }
    return static_cast<Role>(found - role_names.begin());
}

Status check_name(std::string_view name, std::string_view what) {
    const bool valid =
        !name.empty() && name.size() <= max_name_length && is_alphanumeric(name.front()) &&
        std::ranges::all_of(name, [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
    if (!valid) {
        return fail(
            ErrorKind::invalid, "bad_name",
            std::string(what) + " must be 1 to 64 letters, digits, '.', '_' or '-', and begin with a letter or digit");
    }
    return {};
}

std::string Identity::uri() const {
    return std::string(scheme) + federation + "/" + std::string(to_string(role)) + "/" + node;
}

Result<Identity> identity_from_uri(std::string_view uri) {
    const auto wrong = [] {
        return fail(ErrorKind::invalid, "bad_identity",
                    "the certificate names no causeway://federation/role/node: join again with a new token");
    };
    if (!uri.starts_with(scheme)) {
        return wrong();
    }
    const auto parts = split_text(uri.substr(scheme.size()), '/');
    if (parts.size() != 3 || !check_name(parts[0], "federation") || !check_name(parts[2], "node")) {
        return wrong();
    }
    const auto role = role_from(parts[1]);
    if (!role) {
        return wrong();
    }
    return Identity{parts[0], *role, parts[2]};
}

}  // namespace causeway
