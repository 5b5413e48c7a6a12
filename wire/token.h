// The join token: one line that a person carries from `token new` to `join`.
//
// "causeway-join-1." and base64url of a version byte, the fields and the first 4 bytes of their SHA-256, so that a
// truncated paste is told from a wrong one. It holds a secret: tokens are short-lived and used once.
//
// threads  reentrant
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/digest.h"
#include "wire/address.h"
#include "wire/identity.h"

namespace causeway {

struct JoinToken {
    std::vector<Address> addresses;  // 1 to 16, tried in order
    Digest authority_key;            // SHA-256 of the CA's SubjectPublicKeyInfo
    std::string federation;
    Role role = Role::client;
    std::string name;
    Bytes secret;  // 32 bytes
    std::int64_t expires_s = 0;
    bool operator==(const JoinToken&) const = default;
};

constexpr std::size_t token_secret_bytes = 32;
constexpr std::size_t max_token_addresses = 16;

std::string format_token(const JoinToken& token);
/// Total: any text gives a token or an error. Surrounding space is ignored.
///
/// errors   invalid: not_a_token; truncated_token: the end is missing; bad_token: altered, or a value has no meaning;
///          unsupported `newer_token`
Result<JoinToken> parse_token(std::string_view text);

}  // namespace causeway
