// Inside of the secure channel: what tls_context.cpp and secure_channel.cpp share. The one header with OpenSSL's
// types; nothing but those two files includes it.
#pragma once

#include <openssl/ssl.h>

#include "wire/secure_channel.h"

namespace causeway {

struct FreeSslContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

enum class ChannelEnd { connecting, accepting };

struct ChannelContext::State {
    std::unique_ptr<SSL_CTX, FreeSslContext> ssl;
    ChannelEnd end = ChannelEnd::connecting;
    Trust trust;
    std::shared_ptr<X509> authority;  // of `trust`, where it holds one
    std::optional<Validity> own;      // of our certificate; none: joining
    std::vector<Role> roles;
    std::string federation;  // empty: any (a joining node learns it)
    bool enrols = false;     // serves causeway-join/1 too: a coordinator's accepting end
    ChannelOptions options;
};

/// What the handshake's callbacks read and leave behind.
struct TlsSession {
    std::int64_t now_s = 0;
    std::optional<PeerIdentity> peer;
    std::optional<Error> refusal;
};
TlsSession& session_of(SSL* ssl);

}  // namespace causeway
