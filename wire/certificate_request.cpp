// PKCS#10 in and out, and renewal built on it: the request proves the new key, the session it travels in the old one.
#include "wire/certificate_request.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "common/json.h"
#include "wire/openssl_objects.h"

namespace causeway {
namespace {

using RequestObject = std::unique_ptr<X509_REQ, Free<X509_REQ_free>>;
struct FreeExtensions {
    void operator()(STACK_OF(X509_EXTENSION) * stack) const { sk_X509_EXTENSION_pop_free(stack, X509_EXTENSION_free); }
};
using Extensions = std::unique_ptr<STACK_OF(X509_EXTENSION), FreeExtensions>;

constexpr std::size_t largest_body = 8 * 1024;

tl::unexpected<Error> bad_request(const std::string& why) {
    ERR_clear_error();
    return fail(ErrorKind::invalid, "bad_certificate_request", "the certificate request is refused: " + why);
}

/// The single URI among the alternative names that the request asks for.
std::string requested_uri(X509_REQ* request) {
    const Extensions extensions(X509_REQ_get_extensions(request));
    const std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>> names(
        static_cast<GENERAL_NAMES*>(X509V3_get_d2i(extensions.get(), NID_subject_alt_name, nullptr, nullptr)));
    ERR_clear_error();
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

/// Everything that the certificate needs, so that an authority may copy it (openssl: copy_extensions).
void add_extensions(X509_REQ* request, const Identity& identity) {
    const std::pair<int, std::string> wanted[] = {{NID_basic_constraints, "critical,CA:FALSE"},
                                                  {NID_key_usage, "critical,digitalSignature"},
                                                  {NID_ext_key_usage, "serverAuth,clientAuth"},
                                                  {NID_subject_alt_name, "URI:" + identity.uri()}};
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, nullptr, nullptr, request, nullptr, 0);
    const Extensions extensions(sk_X509_EXTENSION_new_null());
    for (const auto& [kind, value] : wanted) {
        auto* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
        ASSERT(extension != nullptr);  // texts of ours and checked names
        sk_X509_EXTENSION_push(extensions.get(), extension);
    }
    X509_REQ_add_extensions(request, extensions.get());
}

}  // namespace

Result<Bytes> make_certificate_request(const KeyPair& pair, const Identity& identity) {
    TRY(check_name(identity.federation, "the federation's name"));
    TRY(check_name(identity.node, "the node's name"));
    const auto* at = raw(pair.private_key);
    const Key key(d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(pair.private_key.size())));
    if (!key) {
        return fail(ErrorKind::corrupt, "bad_private_key", "the private key is not readable: restore its file");
    }
    const RequestObject request(X509_REQ_new());
    X509_REQ_set_version(request.get(), 0);
    X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request.get()), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(identity.node.data()),
                               static_cast<int>(identity.node.size()), -1, 0);
    X509_REQ_set_pubkey(request.get(), key.get());
    add_extensions(request.get(), identity);
    if (X509_REQ_sign(request.get(), key.get(), EVP_sha256()) == 0) {
        return fail(ErrorKind::corrupt, "bad_private_key", "the private key cannot sign: restore its file");
    }
    return to_der(request.get(), i2d_X509_REQ);
}

Result<CertificateRequest> read_certificate_request(ByteView der) {
    const auto* at = raw(der);
    const RequestObject request(d2i_X509_REQ(nullptr, &at, static_cast<long>(der.size())));
    if (!request || at != raw(der) + der.size()) {
        return bad_request("it is not readable PKCS#10");
    }
    auto* key = X509_REQ_get0_pubkey(request.get());
    if (key == nullptr) {
        return bad_request("its key is not readable");
    }
    CertificateRequest result{{}, to_der(key, i2d_PUBKEY)};
    TRY(check_public_key(result.public_key));
    if (X509_REQ_verify(request.get(), key) != 1) {
        ERR_clear_error();
        return fail(ErrorKind::refused, "bad_signature", "the request is not signed by the key it names");
    }
    TRY_ASSIGN(result.identity, identity_from_uri(requested_uri(request.get())));
    return result;
}

Bytes certificate_request_to_pem(ByteView request) {
    return to_pem("CERTIFICATE REQUEST", request);
}

// ---------------------------------------------------------------- renewal

Result<std::string> renewal_body(const std::filesystem::path& folder, const Identity& identity) {
    TRY_ASSIGN(const auto key, next_key(folder));
    TRY_ASSIGN(const auto request, make_certificate_request(key, identity));
    return Json::object().set("request", to_base64url(request)).dump();
}

Result<CertificateRequest> read_renewal_body(std::string_view body, const Identity& asker) {
    TRY_ASSIGN(const auto parsed, Json::parse(body, largest_body));
    const auto der = from_base64url(parsed["request"].text());
    if (!der) {
        return bad_request("it is not base64url");
    }
    TRY_ASSIGN(auto request, read_certificate_request(*der));
    if (request.identity != asker) {
        return fail(ErrorKind::refused, "wrong_identity",
                    "a certificate is renewed for the identity that asks, which is " + asker.uri());
    }
    return request;
}

Result<Credentials> accept_renewal(const std::filesystem::path& folder, const Credentials& present,
                                   ByteView certificate, std::int64_t now_s) {
    TRY_ASSIGN(const auto peer, verify_certificate(certificate, {}, present.authority_certificate,
                                                   {present.identity.role}, present.identity.federation, now_s));
    if (peer.identity != present.identity) {
        return fail(ErrorKind::refused, "wrong_certificate", "the renewed certificate is for " + peer.identity.uri());
    }
    TRY(save_renewed(folder, certificate));
    return load_credentials(folder);
}

}  // namespace causeway
