// Join tokens as text. Layout inside: u8 version, u16 length of the rest, the fields, u8[4] checksum.
#include "wire/token.h"

#include <algorithm>

#include "common/text.h"

namespace causeway {
namespace {

constexpr std::string_view prefix = "causeway-join-1.";
constexpr std::uint8_t version = 1;
constexpr std::size_t checksum_bytes = 4;
constexpr std::size_t max_token_text = 8192;
constexpr std::size_t max_field = 300;  // a DNS name, a federation

tl::unexpected<Error> bad_token() {
    return fail(ErrorKind::invalid, "bad_token", "the token has been altered: copy it again, whole");
}
tl::unexpected<Error> truncated() {
    return fail(ErrorKind::invalid, "truncated_token", "the token's end is missing: copy it again, whole");
}

ByteView checksum(const Digest& digest) {
    return ByteView(digest.bytes).first(checksum_bytes);
}

/// The fields in their order; a token that ends early or late inside a right checksum was made by a broken program.
Result<JoinToken> read_fields(ByteReader reader) {
    JoinToken token;
    TRY_ASSIGN(const auto count, reader.get<std::uint8_t>());
    for (unsigned i = 0; i < count; ++i) {
        Address address;
        TRY_ASSIGN(address.host, reader.get_text(max_field));
        TRY_ASSIGN(address.port, reader.get<std::uint16_t>());
        token.addresses.push_back(std::move(address));
    }
    TRY_ASSIGN(const auto key, reader.get_bytes(token.authority_key.bytes.size()));
    std::ranges::copy(key, token.authority_key.bytes.begin());
    TRY_ASSIGN(token.federation, reader.get_text(max_field));
    TRY_ASSIGN(const auto role, reader.get_text(max_field));
    TRY_ASSIGN(token.role, role_from(role));
    TRY_ASSIGN(token.name, reader.get_text(max_field));
    TRY_ASSIGN(const auto secret, reader.get_bytes(token_secret_bytes));
    token.secret = to_bytes(secret);
    TRY_ASSIGN(token.expires_s, reader.get<std::int64_t>());
    if (reader.left() != 0) {
        return bad_token();
    }
    return token;
}

/// What a person could use: addresses that can be connected to, names that can be certified, no coordinator.
bool is_sensible(const JoinToken& token) {
    const auto connectable = [](const Address& address) {
        const auto again = parse_address(address.text());
        return address.host != "*" && again && *again == address;
    };
    return !token.addresses.empty() && token.addresses.size() <= max_token_addresses &&
           std::ranges::all_of(token.addresses, connectable) && check_name(token.federation, "federation") &&
           check_name(token.name, "name") && token.role != Role::coordinator && token.expires_s >= 0;
}

}  // namespace

// The length stands before the body, so that a missing end is told from a changed middle without the checksum.
std::string format_token(const JoinToken& token) {
    ASSERT(token.secret.size() == token_secret_bytes);
    ByteWriter fields;
    fields.put(static_cast<std::uint8_t>(token.addresses.size()));
    for (const auto& address : token.addresses) {
        fields.put_text(address.host);
        fields.put(address.port);
    }
    fields.put_bytes(token.authority_key.bytes);
    fields.put_text(token.federation);
    fields.put_text(to_string(token.role));
    fields.put_text(token.name);
    fields.put_bytes(token.secret);
    fields.put(token.expires_s);
    const auto body = fields.take();
    ByteWriter whole;
    whole.put(version);
    whole.put(static_cast<std::uint16_t>(body.size()));
    whole.put_bytes(body);
    whole.put_bytes(checksum(sha256(body)));
    return std::string(prefix) + to_base64url(whole.take());
}

Result<JoinToken> parse_token(std::string_view text) {
    text = trim(text);
    if (!text.starts_with(prefix) || text.size() > max_token_text) {
        const bool beginning = !text.empty() && prefix.starts_with(text);
        return beginning ? truncated()
                         : fail(ErrorKind::invalid, "not_a_token",
                                "this is not a join token: `causeway token new --name NAME` prints one, "
                                "beginning with " +
                                    std::string(prefix));
    }
    const auto encoded = text.substr(prefix.size());
    auto bytes = from_base64url(encoded);
    if (!bytes) {  // a cut group of four is not base64; what stands before it tells a cut from an alteration
        bytes = from_base64url(encoded.substr(0, encoded.size() / 4 * 4));
    }
    if (!bytes) {
        return bad_token();
    }
    ByteReader reader(*bytes);
    const auto format = reader.get<std::uint8_t>();
    const auto length = reader.get<std::uint16_t>();
    if (!format || !length) {
        return truncated();
    }
    if (*format != version) {
        return *format > version ? fail(ErrorKind::unsupported, "newer_token",
                                        "the token is of a later version of causeway: upgrade this node")
                                 : bad_token();
    }
    if (reader.left() < std::size_t{*length} + checksum_bytes) {
        return truncated();
    }
    const auto body = *reader.get_bytes(*length);
    const auto sum = *reader.get_bytes(checksum_bytes);
    if (reader.left() != 0 || !equal_in_constant_time(sum, checksum(sha256(body)))) {
        return bad_token();
    }
    auto token = read_fields(ByteReader(body));
    return token && is_sensible(*token) ? std::move(token) : bad_token();
}

}  // namespace causeway
