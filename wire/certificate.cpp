// X.509: the authority, node certificates, and the judgement of a peer's certificate.
//
// One place decides whom to believe: the secure channel hands a peer's certificate over as bytes and gets an identity
// or a coded refusal, so every rule of this file is tested without a handshake. source: RFC 5280.
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>

#include "common/printable.h"
#include "wire/identity.h"
#include "wire/judged_certificate.h"
#include "wire/openssl_objects.h"

namespace causeway {
namespace {

using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;

struct FreeStack {
    void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using Stack = std::unique_ptr<STACK_OF(X509), FreeStack>;

tl::unexpected<Error> bad_certificate() {
    return fail(ErrorKind::corrupt, "bad_certificate", "the certificate is not readable X.509");
}

Result<Certificate> parse(ByteView der) {
    const auto* at = raw(der);
    Certificate certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
    if (!certificate || at != raw(der) + der.size()) {
        return bad_certificate();
    }
    return certificate;
}

// ---------------------------------------------------------------- issuing

/// 128 random bits: a serial number is never used twice. source: RFC 5280, 4.1.2.2
void set_serial(X509* certificate) {
    Bytes random = secret_random_bytes(16);
    random[0] &= std::byte{0x7f};  // positive
    const std::unique_ptr<BIGNUM, Free<BN_free>> number(BN_bin2bn(raw(random), 16, nullptr));
    BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate));
}

void set_times(X509* certificate, std::int64_t now_s, std::int64_t lifetime_s) {
    ASN1_TIME_set(X509_getm_notBefore(certificate), now_s - clock_tolerance_s);
    ASN1_TIME_set(X509_getm_notAfter(certificate), now_s + lifetime_s);
}

void set_name(X509_NAME* name, const char* field, std::string_view value) {
    X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.data()),
                               static_cast<int>(value.size()), -1, 0);
}

/// Adds an extension in OpenSSL's text form; the texts are ours and checked names, so failure is a bug.
void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
    ASSERT(extension != nullptr);
    X509_add_ext(certificate, extension.get(), -1);
}

Result<Key> private_key(const KeyPair& pair) {
    const auto* at = raw(pair.private_key);
    Key key(d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(pair.private_key.size())));
    if (!key) {
        return fail(ErrorKind::corrupt, "bad_private_key", "the authority's private key is not readable");
    }
    return key;
}

/// What both kinds of certificate share: version, serial, times, subject, key.
Result<Certificate> blank_certificate(ByteView public_key, std::string_view common_name, std::int64_t now_s,
                                      std::int64_t lifetime_s) {
    TRY(check_public_key(public_key));
    const auto* at = raw(public_key);
    const Key key(d2i_PUBKEY(nullptr, &at, static_cast<long>(public_key.size())));
    Certificate certificate(X509_new());
    X509_set_version(certificate.get(), X509_VERSION_3);
    set_serial(certificate.get());
    set_times(certificate.get(), now_s, lifetime_s);
    X509_set_pubkey(certificate.get(), key.get());
    set_name(X509_get_subject_name(certificate.get()), "CN", common_name);
    return certificate;
}

Result<Bytes> sign_certificate(X509* certificate, const KeyPair& authority_key) {
    TRY_ASSIGN(const auto key, private_key(authority_key));
    if (X509_sign(certificate, key.get(), EVP_sha256()) == 0) {
        return fail(ErrorKind::corrupt, "bad_private_key", "the authority's private key cannot sign");
    }
    return to_der(certificate, i2d_X509);
}

// ---------------------------------------------------------------- reading

std::int64_t unix_seconds(const ASN1_TIME* time) {
    std::tm broken_down{};
    return ASN1_TIME_to_tm(time, &broken_down) == 1 ? static_cast<std::int64_t>(timegm(&broken_down)) : 0;
}

/// The single URI among the subject's alternative names; none or several are no identity.
std::string alternative_uri(X509* certificate) {
    const std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>> names(
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
    if (!names || sk_GENERAL_NAME_num(names.get()) != 1) {
        return {};
    }
    const auto* name = sk_GENERAL_NAME_value(names.get(), 0);
    if (name->type != GEN_URI) {
        return {};
    }
    const auto* text = name->d.uniformResourceIdentifier;
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
            static_cast<std::size_t>(ASN1_STRING_length(text))};
}

/// What stands in it, not whether it is true.
Result<CertificateFacts> read(X509* certificate) {
    TRY_ASSIGN(auto identity, identity_from_uri(alternative_uri(certificate)));
    return CertificateFacts{std::move(identity), unix_seconds(X509_get0_notBefore(certificate)),
                            unix_seconds(X509_get0_notAfter(certificate)),
                            certificate_fingerprint(to_der(certificate, i2d_X509))};
}

// ---------------------------------------------------------------- judging

tl::unexpected<Error> refused_certificate(std::string code, std::string message) {
    return fail(ErrorKind::refused, std::move(code), std::move(message));
}

/// OpenSSL's reason as one of our codes, with the remedy.
tl::unexpected<Error> refusal_of(int reason) {
    switch (reason) {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return refused_certificate("certificate_expired", "the peer's certificate has expired: it must join again");
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return refused_certificate("certificate_not_yet_valid",
                                       "the peer's certificate is not valid yet: compare the clocks");
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            return refused_certificate("self_signed",
                                       "the peer signed its certificate itself: it must join with a token");
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:
            return refused_certificate(
                "unknown_ca",
                "the peer's certificate is of another federation's authority: join with a token of "
                "this federation");
        default:
            return refused_certificate("bad_certificate", std::string("the peer's certificate is refused: ") +
                                                              X509_verify_cert_error_string(reason));
    }
}

/// The authority's certificate: the one we hold, or the one of the chain whose key has the trusted digest.
Result<Bytes> find_authority(const std::vector<Bytes>& chain, const Trust& trust) {
    if (const auto* held = std::get_if<Bytes>(&trust)) {
        return *held;
    }
    for (const auto& candidate : chain) {
        const auto digest = certificate_key_digest(candidate);
        if (digest && *digest == std::get<Digest>(trust)) {
            return candidate;
        }
    }
    return refused_certificate("unknown_ca",
                               "the server does not show the authority that the token names: ask for a new token");
}

/// The chain is the authority and the leaf, nothing between: no intermediate can widen what the authority signed.
/// PARTIAL_CHAIN: the authority is believed for itself, also where another one certified it.
/// STRICT demands RFC 5280's extensions (key identifiers, criticality), which every certificate of ours has.
Status verify_signature_and_time(X509* certificate, X509* authority, std::int64_t now_s) {
    const std::unique_ptr<X509_STORE, Free<X509_STORE_free>> store(X509_STORE_new());
    const std::unique_ptr<X509_STORE_CTX, Free<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
    X509_STORE_add_cert(store.get(), authority);
    X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr);
    auto* rules = X509_STORE_CTX_get0_param(context.get());
    X509_VERIFY_PARAM_set_time(rules, now_s);
    X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_X509_STRICT | X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_depth(rules, 1);
    if (X509_verify_cert(context.get()) == 1) {
        return {};
    }
    return refusal_of(X509_STORE_CTX_get_error(context.get()));
}

}  // namespace

// A key usage of signing certificates only, and a path length of 0: the authority signs nodes, never other authorities.
Result<Authority> make_authority(const std::string& federation, std::int64_t now_s) {
    TRY(check_name(federation, "the federation's name"));
    Authority authority{federation, make_key(), {}};
    TRY_ASSIGN(auto certificate,
               blank_certificate(authority.key.public_key, federation, now_s, authority_certificate_s));
    auto* self = certificate.get();
    X509_set_issuer_name(self, X509_get_subject_name(self));
    add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
    add_extension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign");
    add_extension(self, self, NID_subject_key_identifier, "hash");
    TRY_ASSIGN(authority.certificate, sign_certificate(self, authority.key));
    return authority;
}

// Both usages, for a node may accept connections as well as make them (hosts and, later, direct streams).
Result<Bytes> issue_certificate(const Authority& authority, ByteView public_key, const Identity& identity,
                                std::int64_t now_s, std::int64_t lifetime_s) {
    TRY(check_name(identity.federation, "the federation's name"));
    TRY(check_name(identity.node, "the node's name"));
    TRY_ASSIGN(auto issuer, parse(authority.certificate));
    TRY_ASSIGN(auto certificate, blank_certificate(public_key, identity.node, now_s, lifetime_s));
    auto* self = certificate.get();
    X509_set_issuer_name(self, X509_get_subject_name(issuer.get()));
    add_extension(self, issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
    add_extension(self, issuer.get(), NID_key_usage, "critical,digitalSignature");
    add_extension(self, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth");
    add_extension(self, issuer.get(), NID_subject_alt_name, "URI:" + identity.uri());
    add_extension(self, issuer.get(), NID_subject_key_identifier, "hash");
    add_extension(self, issuer.get(), NID_authority_key_identifier, "keyid");
    return sign_certificate(self, authority.key);
}

namespace {

/// An authority elsewhere may not lay notBefore back; of a life shorter than that day nothing is taken away.
std::int64_t part_of_life(const CertificateFacts& facts, std::int64_t parts, std::int64_t of) {
    const auto whole = facts.not_after_s - facts.not_before_s;
    const auto begin = facts.not_before_s + (whole > clock_tolerance_s ? clock_tolerance_s : 0);
    return begin + (facts.not_after_s - begin) * parts / of;
}

}  // namespace

std::int64_t renewal_due_s(const CertificateFacts& facts) {
    return part_of_life(facts, 2, 3);
}
std::int64_t renewal_allowed_s(const CertificateFacts& facts) {
    return part_of_life(facts, 1, 2);
}

Result<CertificateFacts> read_certificate(ByteView certificate) {
    TRY_ASSIGN(const auto parsed, parse(certificate));
    return read(parsed.get());
}

Result<Validity> certificate_validity(ByteView certificate) {
    TRY_ASSIGN(const auto parsed, parse(certificate));
    return Validity{unix_seconds(X509_get0_notBefore(parsed.get())), unix_seconds(X509_get0_notAfter(parsed.get()))};
}

Digest certificate_fingerprint(ByteView certificate) {
    return sha256(certificate);
}

Result<Bytes> certificate_public_key(ByteView certificate) {
    TRY_ASSIGN(const auto parsed, parse(certificate));
    unsigned char* allocated = nullptr;
    const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(parsed.get()), &allocated);
    if (size <= 0) {
        return bad_certificate();
    }
    auto key = to_bytes(std::as_bytes(std::span(allocated, static_cast<std::size_t>(size))));
    OPENSSL_free(allocated);
    return key;
}

Result<Digest> certificate_key_digest(ByteView certificate) {
    TRY_ASSIGN(const auto key, certificate_public_key(certificate));
    return sha256(key);
}

Result<bool> is_authority(ByteView certificate) {
    TRY_ASSIGN(const auto parsed, parse(certificate));
    return X509_check_ca(parsed.get()) > 0;
}

Result<std::string> certificate_common_name(ByteView certificate) {
    TRY_ASSIGN(const auto parsed, parse(certificate));
    char name[128] = {};
    if (X509_NAME_get_text_by_NID(X509_get_subject_name(parsed.get()), NID_commonName, name, sizeof(name)) < 0) {
        return bad_certificate();
    }
    return printable(name, Lines::one);  // of an authority that may be anybody's
}

Result<PeerIdentity> verify_certificate(ByteView certificate, const std::vector<Bytes>& chain, const Trust& trust,
                                        const std::vector<Role>& roles, std::string_view federation,
                                        std::int64_t now_s) {
    TRY_ASSIGN(const auto authority_der, find_authority(chain, trust));
    TRY_ASSIGN(const auto authority, parse(authority_der));
    TRY_ASSIGN(const auto peer, parse(certificate));
    return judge_certificate(peer.get(), authority.get(), roles, federation, now_s);
}

Result<std::shared_ptr<X509>> read_authority(const Trust& trust) {
    const auto* held = std::get_if<Bytes>(&trust);
    if (!held) {
        return std::shared_ptr<X509>();
    }
    TRY_ASSIGN(auto authority, parse(*held));
    return std::shared_ptr<X509>(std::move(authority));
}

Result<PeerIdentity> judge_certificate(X509* certificate, X509* authority, const std::vector<Role>& roles,
                                       std::string_view federation, std::int64_t now_s) {
    TRY(verify_signature_and_time(certificate, authority, now_s));
    TRY_ASSIGN(auto facts, read(certificate));
    if (std::ranges::find(roles, facts.identity.role) == roles.end()) {
        return refused_certificate(
            "wrong_role", "the peer's certificate is for the role " + std::string(to_string(facts.identity.role)) +
                              ", which may not speak here: join with a token for the role that is "
                              "needed");
    }
    if (!federation.empty() && facts.identity.federation != federation) {
        return refused_certificate("wrong_federation",
                                   "the peer belongs to the federation " + facts.identity.federation + ", not to " +
                                       std::string(federation) +
                                       ": use the state folder, or a token, of the same federation");
    }
    return PeerIdentity{std::move(facts.identity), facts.fingerprint};
}

}  // namespace causeway
