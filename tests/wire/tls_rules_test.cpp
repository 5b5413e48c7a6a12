// The rules of TLS that no peer of ours would break, tried against plain OpenSSL at the other end: what is agreed, what
// is never handed out, and what a connecting node does not put up with. Certificates' times are read by OpenSSL too, so
// that our own reader cannot hide what our writer forgot.
#include <openssl/ssl.h>

#include <ctime>
#include <functional>

#include <catch2/catch.hpp>

#include "tests/wire/fixtures.h"
#include "wire/secure_channel.h"

namespace causeway {
namespace {

constexpr std::string_view session_protocol =
    "\x0a"
    "causeway/1";

const unsigned char* raw(const auto& bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// One end of a connection by plain OpenSSL, its settings open to the test.
struct ForeignEnd {
    SSL_CTX* context;
    SSL* ssl = nullptr;

    explicit ForeignEnd(const SSL_METHOD* method) : context(SSL_CTX_new(method)) {}
    ForeignEnd(const ForeignEnd&) = delete;
    ForeignEnd& operator=(const ForeignEnd&) = delete;
    ~ForeignEnd() {
        SSL_free(ssl);
        SSL_CTX_free(context);
    }
    void use(const Credentials& credentials) {
        REQUIRE(SSL_CTX_use_certificate_ASN1(context, static_cast<int>(credentials.certificate.size()),
                                             raw(credentials.certificate)) == 1);
        REQUIRE(SSL_CTX_use_PrivateKey_ASN1(EVP_PKEY_EC, context, raw(credentials.key.private_key),
                                            static_cast<long>(credentials.key.private_key.size())) == 1);
    }
    void begin() {
        ssl = SSL_new(context);
        SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    }
    /// Gives `channel` what this end has said, and takes its answer; its status.
    Status exchange(SecureChannel& channel, std::vector<SharedBytes>& messages) {
        char* data = nullptr;
        const long size = BIO_get_mem_data(SSL_get_wbio(ssl), &data);
        Bytes answer;
        const auto status =
            channel.receive(std::as_bytes(std::span(data, static_cast<std::size_t>(size))), answer, messages);
        BIO_reset(SSL_get_wbio(ssl));
        BIO_write(SSL_get_rbio(ssl), answer.data(), static_cast<int>(answer.size()));
        return status;
    }
};

int tickets_seen = 0;
int count_ticket(SSL*, SSL_SESSION*) {
    ++tickets_seen;
    return 0;
}

/// A key agreed outside: what a server that takes pre-shared keys would go on with.
int offer_psk(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* size, SSL_SESSION** session) {
    static const std::string name = "shared";
    const Bytes secret(48, std::byte{7});
    SSL_SESSION* made = SSL_SESSION_new();
    SSL_SESSION_set1_master_key(made, raw(secret), secret.size());
    SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION);
    const unsigned char aes_256_gcm[] = {0x13, 0x02};
    SSL_SESSION_set_cipher(made, SSL_CIPHER_find(ssl, aes_256_gcm));
    SSL_SESSION_set_max_early_data(made, 1024);
    *id = raw(name);
    *size = name.size();
    *session = made;
    return 1;
}

TEST_CASE("a session is TLS 1.3 with AES-256-GCM and leaves no ticket, however it is asked for one", "[wire][tls]") {
    const Federation federation;
    const auto accepting = *ChannelContext::accepting(federation.node(Role::coordinator, "coordinator"));
    ForeignEnd client(TLS_client_method());
    client.use(federation.node(Role::client, "site-a"));
    SSL_CTX_set_alpn_protos(client.context, raw(session_protocol), static_cast<unsigned>(session_protocol.size()));
    SSL_CTX_set_session_cache_mode(client.context, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_sess_set_new_cb(client.context, count_ticket);
    tickets_seen = 0;
    client.begin();
    SSL_set_connect_state(client.ssl);
    SecureChannel server(accepting, test_now_s);
    std::vector<SharedBytes> messages;
    for (int turn = 0; turn < 5; ++turn) {
        SSL_do_handshake(client.ssl);
        REQUIRE(client.exchange(server, messages));
    }
    char byte = 0;
    SSL_read(client.ssl, &byte, 1);  // where a ticket would be taken in
    CHECK(server.is_open());
    CHECK(SSL_version(client.ssl) == TLS1_3_VERSION);
    CHECK(SSL_get_cipher_name(client.ssl) == std::string("TLS_AES_256_GCM_SHA384"));
    CHECK(tickets_seen == 0);
    CHECK(SSL_SESSION_is_resumable(SSL_get_session(client.ssl)) == 0);
    CHECK(SSL_SESSION_get_max_early_data(SSL_get_session(client.ssl)) == 0);
}

TEST_CASE("a key agreed outside is not taken: the certificates are asked for all the same, and no early data",
          "[wire][tls]") {
    const Federation federation;
    const auto accepting = *ChannelContext::accepting(federation.node(Role::coordinator, "coordinator"));
    for (const bool certified : {true, false}) {
        ForeignEnd client(TLS_client_method());
        if (certified) {
            client.use(federation.node(Role::client, "site-a"));
        }
        SSL_CTX_set_alpn_protos(client.context, raw(session_protocol), static_cast<unsigned>(session_protocol.size()));
        SSL_CTX_set_psk_use_session_callback(client.context, offer_psk);
        client.begin();
        SSL_set_connect_state(client.ssl);
        std::size_t written = 0;
        SSL_write_early_data(client.ssl, "early", 5, &written);  // refused by the server, or never sent
        SecureChannel server(accepting, test_now_s);
        std::vector<SharedBytes> messages;
        Status status;
        for (int turn = 0; turn < 5 && status; ++turn) {
            status = client.exchange(server, messages);
            SSL_do_handshake(client.ssl);
        }
        CHECK(messages.empty());
        CHECK(SSL_session_reused(client.ssl) == 0);
        CHECK(SSL_get_early_data_status(client.ssl) != SSL_EARLY_DATA_ACCEPTED);
        CHECK(server.is_open() == certified);
        CHECK((status ? "" : status.error().code) == (certified ? "" : "no_certificate"));
    }
}

int take_first_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in, unsigned,
                        void*) {
    *out = in + 1;
    *size = in[0];
    return SSL_TLSEXT_ERR_OK;
}

TEST_CASE("a connecting node goes on with no older TLS, no other cipher and no other protocol", "[wire][tls]") {
    const Federation federation;
    const auto connecting = *ChannelContext::connecting(federation.node(Role::client, "site-a"));
    const auto verdict = [&](const std::function<void(SSL_CTX*)>& settings) {
        ForeignEnd server(TLS_server_method());
        server.use(federation.node(Role::coordinator, "coordinator"));
        SSL_CTX_set_alpn_select_cb(server.context, take_first_protocol, nullptr);
        settings(server.context);
        server.begin();
        SSL_set_accept_state(server.ssl);
        SecureChannel client(connecting, test_now_s);
        Bytes hello;
        REQUIRE(client.start(hello));
        BIO_write(SSL_get_rbio(server.ssl), hello.data(), static_cast<int>(hello.size()));
        std::vector<SharedBytes> messages;
        Status status;
        for (int turn = 0; turn < 5 && status; ++turn) {
            SSL_do_handshake(server.ssl);
            status = server.exchange(client, messages);
        }
        return status ? client.is_open() ? "open" : "silent" : status.error().code;
    };
    CHECK(verdict([](SSL_CTX*) {}) == "open");
    CHECK(verdict([](SSL_CTX* c) { SSL_CTX_set_max_proto_version(c, TLS1_2_VERSION); }) == "tls_version");
    CHECK(verdict([](SSL_CTX* c) { SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256"); }) == "peer_refused");
    CHECK(verdict([](SSL_CTX* c) { SSL_CTX_set_alpn_select_cb(c, nullptr, nullptr); }) == "wrong_protocol");
}

std::int64_t unix_seconds(const ASN1_TIME* time) {
    std::tm broken_down{};
    REQUIRE(ASN1_TIME_to_tm(time, &broken_down) == 1);
    return timegm(&broken_down);
}

TEST_CASE("an authority lives for ten years from a day back, and what it signs for 90 days", "[wire][identity]") {
    const Federation federation;
    const auto times = [](const Bytes& der) {
        const auto* at = raw(der);
        X509* read = d2i_X509(nullptr, &at, static_cast<long>(der.size()));
        REQUIRE(read != nullptr);
        const auto pair = std::pair(unix_seconds(X509_get0_notBefore(read)) - test_now_s,
                                    unix_seconds(X509_get0_notAfter(read)) - test_now_s);
        X509_free(read);
        return pair;
    };
    constexpr std::int64_t day = 24 * 3600;
    CHECK(times(federation.authority.certificate) == std::pair(-day, 3650 * day));
    CHECK(times(federation.node(Role::host, "h").certificate) == std::pair(-day, 90 * day));
}

}  // namespace
}  // namespace causeway
