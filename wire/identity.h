// Who a node is: a P-256 key, an X.509 certificate with the SAN URI causeway://<federation>/<role>/<node>, and the
// federation's own certificate authority. Certificates and keys are DER bytes here, so that OpenSSL's types stay in
// .cpp files. Time comes in as unix seconds. source: RFC 5280.
//
// threads  reentrant
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "common/bytes.h"
#include "common/digest.h"
#include "common/result.h"

namespace causeway {

enum class Role { coordinator, operator_, client, host, aggregator };
std::string_view to_string(Role role);
/// errors  invalid `unknown_role`
Result<Role> role_from(std::string_view name);

/// Letters, digits, '.', '_' and '-', 1 to 64 of them, the first a letter or digit: it appears in URIs, paths and logs.
/// errors   invalid `bad_name`; `what` names the thing for the message
Status check_name(std::string_view name, std::string_view what);

struct Identity {
    std::string federation;
    Role role = Role::client;
    std::string node;
    bool operator==(const Identity&) const = default;
    /// causeway://clinic/client/site-a
    [[nodiscard]] std::string uri() const;
};
/// errors  invalid `bad_identity`
Result<Identity> identity_from_uri(std::string_view uri);

struct KeyPair {
    Bytes private_key;  // DER PKCS#8: secret
    Bytes public_key;   // DER SubjectPublicKeyInfo
};
KeyPair make_key();
/// Both halves from the private one. errors: corrupt `bad_private_key`
Result<KeyPair> key_from_private(ByteView private_key);
/// ECDSA with SHA-256. errors: corrupt: not a private key
Result<Bytes> sign(const KeyPair& key, ByteView data);
[[nodiscard]] bool verify_signature(ByteView public_key, ByteView data, ByteView signature);
/// errors  invalid `bad_public_key`: not DER, or not on P-256
Status check_public_key(ByteView public_key);

constexpr std::int64_t day_s = 24 * 3600;
constexpr std::int64_t node_certificate_s = 90 * day_s;  // renewed in session at two thirds
constexpr std::int64_t authority_certificate_s = 3650 * day_s;
constexpr std::int64_t clock_tolerance_s = day_s;  // notBefore lies this far back

struct Authority {
    std::string federation;
    KeyPair key;        // empty where the authority is elsewhere: nothing is signed here then
    Bytes certificate;  // DER: self-signed, or what the authority elsewhere signs with
    [[nodiscard]] bool signs_here() const { return !key.private_key.empty(); }
};
/// A new authority for a federation. cost: one key, one signature
Result<Authority> make_authority(const std::string& federation, std::int64_t now_s);
/// A certificate (DER) for a public key. errors: invalid: names or key
Result<Bytes> issue_certificate(const Authority& authority, ByteView public_key, const Identity& identity,
                                std::int64_t now_s, std::int64_t lifetime_s = node_certificate_s);

struct CertificateFacts {
    Identity identity;
    std::int64_t not_before_s = 0;
    std::int64_t not_after_s = 0;
    Digest fingerprint;  // SHA-256 of the DER
};
/// When to ask for its successor: past two thirds of its life. The day that notBefore lies back is not lived.
std::int64_t renewal_due_s(const CertificateFacts& facts);
/// The same for the first half, before which nobody gets a successor: clocks differ, but not by weeks.
std::int64_t renewal_allowed_s(const CertificateFacts& facts);
/// What a certificate says, believed by nobody yet. errors: corrupt `bad_certificate`, invalid `bad_identity`
Result<CertificateFacts> read_certificate(ByteView certificate);
/// The times alone, which an authority's certificate has too. errors: corrupt `bad_certificate`
struct Validity {
    std::int64_t not_before_s = 0;
    std::int64_t not_after_s = 0;
};
Result<Validity> certificate_validity(ByteView certificate);
Digest certificate_fingerprint(ByteView certificate);
/// DER SubjectPublicKeyInfo. errors: corrupt
Result<Bytes> certificate_public_key(ByteView certificate);
/// SHA-256 of the certificate's SubjectPublicKeyInfo: what a join token carries of the CA. errors: corrupt
Result<Digest> certificate_key_digest(ByteView certificate);

/// Whether it may sign certificates. errors: corrupt
Result<bool> is_authority(ByteView certificate);

/// The subject's common name: an authority's federation, a node's name. errors: corrupt
Result<std::string> certificate_common_name(ByteView certificate);

/// Whom to believe: an authority's certificate, or (joining, before one is known) the digest of its public key.
using Trust = std::variant<Bytes, Digest>;

struct PeerIdentity {
    Identity identity;
    Digest fingerprint;
    bool operator==(const PeerIdentity&) const = default;
};

/// Judges a peer's certificate: signed by the authority, in its time, of an accepted role, with our federation's name
/// (`federation` empty: any).
///
/// errors   refused, with the codes unknown_ca, self_signed, certificate_expired, certificate_not_yet_valid,
///          wrong_role, wrong_federation, bad_certificate
Result<PeerIdentity> verify_certificate(ByteView certificate, const std::vector<Bytes>& chain, const Trust& trust,
                                        const std::vector<Role>& roles, std::string_view federation,
                                        std::int64_t now_s);

/// What a node proves itself with.
struct Credentials {
    Identity identity;
    KeyPair key;
    Bytes certificate;
    Bytes authority_certificate;
};

/// node.key (0600), node.crt, ca.crt in PEM; durable. errors: io
Status save_credentials(const std::filesystem::path& folder, const Credentials& credentials);
/// errors  not_found; refused: a key that others may read; corrupt: not PEM, or key and certificate of two nodes
Result<Credentials> load_credentials(const std::filesystem::path& folder);

// Renewal, crash-safe at any instant: next.key is durable before anyone hears of it; node.crt's replacement is the one
// step that counts, and whichever key belongs to it is the node's; then next.key becomes node.key. Until then the old
// pair is whole. Readers may come at any time, also of other processes; one writer at a time (a folder's lock).

/// The key for the next certificate: made once, so that a repeated request names the same. errors: io, corrupt
Result<KeyPair> next_key(const std::filesystem::path& folder);
/// Puts the certificate for next_key into force. cost: 3 flushes
Status save_renewed(const std::filesystem::path& folder, ByteView certificate);

/// A certificate as a PEM text, and all of them that a file holds, in their order.
Bytes certificate_to_pem(ByteView certificate);
/// errors   corrupt `bad_pem`: none, or another thing among them; not_found; overloaded
Result<std::vector<Bytes>> read_certificates(const std::filesystem::path& file);
/// ca.key (0600), ca.crt: of an authority that signs here.
Status save_authority(const std::filesystem::path& folder, const Authority& authority);
/// Of one elsewhere, `external` holds the federation's name, instead of a key (coordinator/external_authority.h).
Result<Authority> load_authority(const std::filesystem::path& folder);
/// One key alone: made before its certificate exists, so that whatever is repeated asks with the same key.
Result<KeyPair> load_or_make_key(const std::filesystem::path& file);
Status save_key(const std::filesystem::path& file, const KeyPair& key);
Result<KeyPair> load_key(const std::filesystem::path& file);

}  // namespace causeway
