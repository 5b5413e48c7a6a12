// The settings that every channel of one end shares: what is spoken, and who is believed.
#include "wire/tls_context.h"

#include "common/machine.h"
#include "wire/certificate_time.h"
#include "wire/judged_certificate.h"

#include <openssl/err.h>

#include <array>

namespace causeway {
namespace {

// Wire form of the two protocol names: a length byte, then the name.
constexpr std::string_view session_alpn =
    "\x0a"
    "causeway/1";
constexpr std::string_view join_alpn =
    "\x0f"
    "causeway-join/1";
constexpr long max_chain_bytes = 8 * 1024;  // two certificates of about 500 bytes

const unsigned char* raw_protocols(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

bool offers(const unsigned char* in, unsigned size, std::string_view wanted) {
    unsigned char* out = nullptr;
    unsigned char length = 0;
    return SSL_select_next_proto(&out, &length, raw_protocols(wanted), static_cast<unsigned>(wanted.size()), in,
                                 size) == OPENSSL_NPN_NEGOTIATED;
}

/// Chooses the protocol. Only an enrolment is served without a client certificate: it is asked for after this point.
int select_protocol(SSL* ssl, const unsigned char** out, unsigned char* length, const unsigned char* in, unsigned size,
                    void* argument) {
    const auto& context = *static_cast<const ChannelContext::State*>(argument);
    const bool session = offers(in, size, session_alpn);
    if (!session && !(context.enrols && offers(in, size, join_alpn))) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    const auto chosen = session ? session_alpn : join_alpn;
    if (!session) {
        SSL_set_verify(ssl, SSL_VERIFY_NONE, nullptr);
    }
    *out = raw_protocols(chosen) + 1;
    *length = static_cast<unsigned char>(chosen.size() - 1);
    return SSL_TLSEXT_ERR_OK;
}

/// A client that names no protocol at all is refused here: OpenSSL would skip the choice and go on.
int require_protocol(SSL* ssl, int* alert, void*) {
    const unsigned char* extension = nullptr;
    std::size_t size = 0;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &extension, &size) == 1) {
        return SSL_CLIENT_HELLO_SUCCESS;
    }
    session_of(ssl).refusal = Error{ErrorKind::refused, "wrong_protocol",
                                    "the peer does not say that it speaks causeway/1: is it another program?"};
    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;
}

Bytes to_der(X509* certificate) {
    unsigned char* allocated = nullptr;
    const int size = i2d_X509(certificate, &allocated);
    if (size <= 0) {
        return {};
    }
    Bytes der(reinterpret_cast<std::byte*>(allocated), reinterpret_cast<std::byte*>(allocated) + size);
    OPENSSL_free(allocated);
    return der;
}

/// The alert that the peer gets for our refusal; the code itself stays in our log.
int alert_reason(const Error& refusal) {
    if (refusal.code == "certificate_expired") {
        return X509_V_ERR_CERT_HAS_EXPIRED;
    }
    if (refusal.code == "wrong_role" || refusal.code == "wrong_federation" || refusal.code == "bad_identity") {
        return X509_V_ERR_INVALID_PURPOSE;  // an alert of its own: error_of_alert has the words
    }
    return refusal.code == "unknown_ca" || refusal.code == "self_signed" ? X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
                                                                         : X509_V_ERR_CERT_REJECTED;
}

std::optional<Validity> validity_of(X509* certificate) {
    const auto read = certificate_validity(certificate ? to_der(certificate) : Bytes());
    return read ? std::optional(*read) : std::nullopt;
}

Error with_blame(const Error& refusal, X509* peer, const ChannelContext::State& context, std::int64_t now_s) {
    return blame_for_time(refusal, {.peer = validity_of(peer).value_or(Validity{}),
                                    .authority = validity_of(context.authority.get()),
                                    .own = context.own,
                                    .now_s = now_s,
                                    .built_s = build_time_unix_s()});
}

/// Replaces OpenSSL's own judgement by verify_certificate.
int judge_peer(X509_STORE_CTX* handshake, void* argument) {
    const auto& context = *static_cast<const ChannelContext::State*>(argument);
    auto& session =
        session_of(static_cast<SSL*>(X509_STORE_CTX_get_ex_data(handshake, SSL_get_ex_data_X509_STORE_CTX_idx())));
    auto* certificate = X509_STORE_CTX_get0_cert(handshake);
    std::vector<Bytes> chain;
    const auto* shown = context.authority ? nullptr : X509_STORE_CTX_get0_untrusted(handshake);
    for (int i = 0; shown && i < sk_X509_num(shown); ++i) {
        chain.push_back(to_der(sk_X509_value(shown, i)));
    }
    auto peer = context.authority ? judge_certificate(certificate, context.authority.get(), context.roles,
                                                      context.federation, session.now_s)
                                  : verify_certificate(to_der(certificate), chain, context.trust, context.roles,
                                                       context.federation, session.now_s);
    if (!peer) {
        session.refusal = with_blame(peer.error(), certificate, context, session.now_s);
        X509_STORE_CTX_set_error(handshake, alert_reason(*session.refusal));
        return 0;
    }
    session.peer = std::move(*peer);
    X509_STORE_CTX_set_error(handshake, X509_V_OK);
    return 1;
}

Status use_credentials(SSL_CTX* ssl, const Credentials& credentials) {
    const auto size = [](const Bytes& bytes) { return static_cast<long>(bytes.size()); };
    const auto data = [](const Bytes& bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); };
    const bool usable = SSL_CTX_use_certificate_ASN1(ssl, static_cast<int>(size(credentials.certificate)),
                                                     data(credentials.certificate)) == 1 &&
                        SSL_CTX_use_PrivateKey_ASN1(EVP_PKEY_EC, ssl, data(credentials.key.private_key),
                                                    size(credentials.key.private_key)) == 1 &&
                        SSL_CTX_check_private_key(ssl) == 1;
    if (!usable) {
        ERR_clear_error();
        return fail(ErrorKind::corrupt, "bad_credentials",
                    "this node's key and certificate cannot be used: join again");
    }
    return {};
}

/// TLS 1.3 with one cipher and nothing that outlives a session.
void set_rules(SSL_CTX* ssl) {
    SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION);
    SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(ssl, "TLS_AES_256_GCM_SHA384");
    SSL_CTX_set1_groups_list(ssl, "X25519:P-256");
    SSL_CTX_set1_sigalgs_list(ssl, "ECDSA+SHA256");
    SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_num_tickets(ssl, 0);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_early_data(ssl, 0);
    SSL_CTX_set_max_cert_list(ssl, max_chain_bytes);
    // 57 KB per idle session instead of up to 341 (with read-ahead).
    // Only what is shown on purpose: the other side reads all that it is shown.
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
}

Result<std::shared_ptr<ChannelContext::State>> new_state(const SSL_METHOD* method, Trust trust) {
    auto state = std::make_shared<ChannelContext::State>();
    state->ssl.reset(SSL_CTX_new(method));
    ASSERT(state->ssl != nullptr);
    set_rules(state->ssl.get());
    state->trust = std::move(trust);
    TRY_ASSIGN(state->authority, read_authority(state->trust));
    SSL_CTX_set_cert_verify_callback(state->ssl.get(), judge_peer, state.get());
    return state;
}

}  // namespace

TlsSession& session_of(SSL* ssl) {
    return *static_cast<TlsSession*>(SSL_get_app_data(ssl));
}

namespace {

using State = std::shared_ptr<ChannelContext::State>;

Result<State> make_accepting(const Credentials& credentials, ChannelOptions options, std::vector<Role> roles) {
    TRY_ASSIGN(auto state, new_state(TLS_server_method(), credentials.authority_certificate));
    state->end = ChannelEnd::accepting;
    state->roles = std::move(roles);
    state->federation = credentials.identity.federation;
    state->options = options;
    TRY(use_credentials(state->ssl.get(), credentials));
    TRY_ASSIGN(state->own, certificate_validity(credentials.certificate));
    SSL_CTX_set_verify(state->ssl.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    SSL_CTX_set_client_hello_cb(state->ssl.get(), require_protocol, nullptr);
    SSL_CTX_set_alpn_select_cb(state->ssl.get(), select_protocol, state.get());
    return state;
}

Result<State> make_connecting(const Credentials& credentials, ChannelOptions options, std::vector<Role> roles) {
    TRY_ASSIGN(auto state, new_state(TLS_client_method(), credentials.authority_certificate));
    state->roles = std::move(roles);
    state->federation = credentials.identity.federation;
    state->options = options;
    TRY(use_credentials(state->ssl.get(), credentials));
    TRY_ASSIGN(state->own, certificate_validity(credentials.certificate));
    SSL_CTX_set_verify(state->ssl.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_alpn_protos(state->ssl.get(), raw_protocols(session_alpn), static_cast<unsigned>(session_alpn.size()));
    return state;
}

const std::vector<Role> stream_roles = {Role::client, Role::host};

}  // namespace

Result<ChannelContext> ChannelContext::accepting(const Credentials& credentials, ChannelOptions options) {
    TRY_ASSIGN(auto state,
               make_accepting(credentials, options, {Role::operator_, Role::client, Role::host, Role::aggregator}));
    state->enrols = true;
    // The authority goes along, so that a joining node can compare it with its token. All others hold it.
    ASSERT(SSL_CTX_add1_chain_cert(state->ssl.get(), state->authority.get()) == 1);
    return ChannelContext(std::move(state));
}

Result<ChannelContext> ChannelContext::connecting(const Credentials& credentials, ChannelOptions options) {
    TRY_ASSIGN(auto state, make_connecting(credentials, options, {Role::coordinator}));
    return ChannelContext(std::move(state));
}

Result<ChannelContext> ChannelContext::accepting_nodes(const Credentials& credentials, ChannelOptions options) {
    TRY_ASSIGN(auto state, make_accepting(credentials, options, stream_roles));
    return ChannelContext(std::move(state));
}

Result<ChannelContext> ChannelContext::connecting_to_nodes(const Credentials& credentials, ChannelOptions options) {
    TRY_ASSIGN(auto state, make_connecting(credentials, options, stream_roles));
    return ChannelContext(std::move(state));
}

Result<ChannelContext> ChannelContext::joining(const Digest& authority_key) {
    TRY_ASSIGN(auto state, new_state(TLS_client_method(), authority_key));
    state->roles = {Role::coordinator};
    SSL_CTX_set_verify(state->ssl.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_alpn_protos(state->ssl.get(), raw_protocols(join_alpn), static_cast<unsigned>(join_alpn.size()));
    return ChannelContext(std::move(state));
}

}  // namespace causeway
