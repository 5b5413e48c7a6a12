// The secure channel: who is let in, with which code the others are turned away, and that messages arrive whole.
#include <openssl/ssl.h>

#include <catch2/catch.hpp>

#include "tests/wire/fixtures.h"
#include "wire/secure_channel.h"

namespace causeway {
namespace {

/// Two channels with their bytes passed by hand.
struct ChannelPair {
    SecureChannel client;
    SecureChannel server;
    Bytes to_server;
    Bytes to_client;
    std::vector<SharedBytes> at_server;
    std::vector<SharedBytes> at_client;
    Status client_status;
    Status server_status;

    ChannelPair(const ChannelContext& connecting, const ChannelContext& accepting, std::int64_t now_s = test_now_s)
        : client(connecting, now_s), server(accepting, now_s) {
        client_status = client.start(to_server);
    }
    /// Passes everything on until nobody has more to say; `cut` bytes at a time.
    void run(std::size_t cut = SIZE_MAX) {
        for (int turn = 0; turn < 20 && (!to_server.empty() || !to_client.empty()); ++turn) {
            deliver(to_server, server, to_client, at_server, server_status, cut);
            deliver(to_client, client, to_server, at_client, client_status, cut);
        }
    }
    static void deliver(Bytes& bytes, SecureChannel& end, Bytes& answer, std::vector<SharedBytes>& messages,
                        Status& status, std::size_t cut) {
        const Bytes sealed = std::exchange(bytes, {});
        for (std::size_t at = 0; at < sealed.size() && status; at += std::min(cut, sealed.size() - at)) {
            status = end.receive(ByteView(sealed).subspan(at, std::min(cut, sealed.size() - at)), answer, messages);
        }
    }
};

std::string code_of(const Status& status) {
    return status ? "" : status.error().code;
}

struct Ends {
    Federation federation;
    ChannelContext accepting =
        *ChannelContext::accepting(federation.node(Role::coordinator, "coordinator"), {.records_per_key = 5});
    ChannelContext connecting = *ChannelContext::connecting(federation.node(Role::client, "site-a"));
};

TEST_CASE("both ends of a session know each other by certificate", "[wire][tls]") {
    const Ends ends;
    for (const std::size_t cut : {SIZE_MAX, std::size_t{1}, std::size_t{7}}) {
        ChannelPair pair(ends.connecting, ends.accepting);
        pair.run(cut);
        REQUIRE(pair.client.is_open());
        REQUIRE(pair.server.is_open());
        CHECK(pair.server.protocol() == ChannelProtocol::session);
        CHECK(pair.server.peer()->identity == Identity{"clinic", Role::client, "site-a"});
        CHECK(pair.client.peer()->identity.role == Role::coordinator);
    }
}

TEST_CASE("messages of all sizes arrive whole in both directions, whatever the cuts, across key updates",
          "[wire][tls][property]") {
    const std::uint64_t seed = 3;
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = "sizes"});
    const Ends ends;
    ChannelPair pair(ends.connecting, ends.accepting);
    pair.run();
    std::vector<SharedBytes> sent;
    for (int i = 0; i < 60; ++i) {
        const std::array<std::size_t, 8> telling = {1, 16379, 16380, 16381, 32764, 65536, max_message_bytes, 20};
        const auto size = i < 8 ? telling[static_cast<std::size_t>(i)] : 1 + random.below(40'000);
        Bytes message(size, static_cast<std::byte>(i));
        message.back() = std::byte{0xee};
        REQUIRE(pair.client.send(message, pair.to_server).has_value());
        REQUIRE(pair.server.send(message, pair.to_client).has_value());
        CHECK(pair.to_client.size() <= max_sealed_bytes);
        sent.emplace_back(std::move(message));
        pair.run(1 + random.below(20'000));
    }
    CHECK(pair.at_server == sent);
    CHECK(pair.at_client == sent);
    CHECK(code_of(pair.client.send(Bytes(max_message_bytes + 1), pair.to_server)) == "message_too_long");
}

TEST_CASE("a message that is sealed in two parts arrives as one", "[wire][tls]") {
    const Ends ends;
    ChannelPair pair(ends.connecting, ends.accepting);
    pair.run();
    for (const std::size_t head : {1, 100, 16'379, 16'380, 16'381, 40'000}) {
        for (const std::size_t tail : {0, 1, 16'000, 16'384, 500'000}) {
            CAPTURE(head, tail);
            Bytes whole(head + tail, std::byte{7});
            whole[head - 1] = std::byte{8};
            whole.back() = std::byte{9};
            const auto view = ByteView(whole);
            REQUIRE(pair.client.send(view.first(head), view.subspan(head), pair.to_server).has_value());
            pair.run();
            REQUIRE(pair.at_server.size() == 1);
            CHECK(pair.at_server[0] == whole);
            pair.at_server.clear();
        }
    }
}

TEST_CASE("a message's length inside the stream is judged before anything is kept", "[wire][tls]") {
    const Ends ends;
    ChannelPair pair(ends.connecting, ends.accepting);
    pair.run();
    CHECK(code_of(pair.client.send({}, pair.to_server)) == "message_too_long");
    pair.client.finish(pair.to_server);
    pair.run();
    CHECK(code_of(pair.server_status) == "closed");
}

TEST_CASE("each kind of stranger is turned away with its own code", "[wire][tls]") {
    const Ends ends;
    const Federation other;
    const auto server_says = [&](const Credentials& credentials, std::int64_t now_s = test_now_s) {
        ChannelPair pair(*ChannelContext::connecting(credentials), ends.accepting, now_s);
        pair.run();
        CHECK(pair.at_server.empty());
        return code_of(pair.server_status);
    };
    const auto client_says = [&](const Credentials& server, std::int64_t now_s = test_now_s) {
        ChannelPair pair(ends.connecting, *ChannelContext::accepting(server), now_s);
        pair.run();
        return code_of(pair.client_status);
    };
    auto foreign = other.node(Role::client, "site-a");
    CHECK(client_says(other.node(Role::coordinator, "coordinator")) == "unknown_ca");
    foreign.authority_certificate = ends.federation.authority.certificate;  // so that it speaks on
    CHECK(server_says(foreign) == "unknown_ca");

    auto self_signed = ends.federation.node(Role::client, "site-a");
    self_signed.certificate = other.authority.certificate;
    self_signed.key = other.authority.key;
    CHECK(server_says(self_signed) == "self_signed");

    CHECK(client_says(ends.federation.node(Role::client, "mallory")) == "wrong_role");
    CHECK(client_says(ends.federation.node(Role::operator_, "mallory")) == "wrong_role");

    const auto old = ends.federation.node(Role::client, "site-a", test_now_s - 91 * day_s);
    CHECK(server_says(old) == "certificate_expired");
    CHECK(client_says(ends.federation.node(Role::coordinator, "c", test_now_s - 91 * day_s)) == "certificate_expired");
    CHECK(client_says(ends.federation.node(Role::coordinator, "c", test_now_s + 3 * day_s)) ==
          "certificate_not_yet_valid");
}

TEST_CASE("the refused end learns why it was refused", "[wire][tls]") {
    const Ends ends;
    const auto old = ends.federation.node(Role::client, "site-a", test_now_s - 91 * day_s);
    ChannelPair pair(*ChannelContext::connecting(old), ends.accepting);
    pair.run();
    CHECK(code_of(pair.client_status) == "certificate_expired");
}

/// A client of plain OpenSSL, to say what our own client never would.
struct ForeignClient {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL* ssl = nullptr;

    /// The server's verdict on what this client says; its answer is left in `answer`.
    std::string verdict(const ChannelContext& accepting, Bytes& answer) {
        ssl = SSL_new(context);
        SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SecureChannel server(accepting, test_now_s);
        std::vector<SharedBytes> messages;
        Status status;
        for (int turn = 0; turn < 5 && status; ++turn) {
            SSL_connect(ssl);
            char* data = nullptr;
            const long size = BIO_get_mem_data(SSL_get_wbio(ssl), &data);
            status = server.receive(std::as_bytes(std::span(data, static_cast<std::size_t>(size))), answer, messages);
            BIO_reset(SSL_get_wbio(ssl));
            BIO_write(SSL_get_rbio(ssl), answer.data(), static_cast<int>(answer.size()));
            answer.clear();
        }
        CHECK(messages.empty());
        CHECK_FALSE((status && server.is_open() && server.protocol() == ChannelProtocol::session));
        return code_of(status);
    }
    void offer(std::string_view protocols) {
        SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(protocols.data()),
                                static_cast<unsigned>(protocols.size()));
    }
    ForeignClient() = default;
    ForeignClient(const ForeignClient&) = delete;
    ForeignClient& operator=(const ForeignClient&) = delete;
    ~ForeignClient() {
        SSL_free(ssl);
        SSL_CTX_free(context);
    }
};

TEST_CASE("another program, an old TLS, another cipher or no certificate get no session", "[wire][tls]") {
    const Ends ends;
    Bytes answer;
    const std::string_view session =
        "\x0a"
        "causeway/1";
    {
        ForeignClient client;
        client.offer(session);
        CHECK(client.verdict(ends.accepting, answer) == "no_certificate");
    }
    {
        ForeignClient client;
        client.offer("\x08http/1.1");
        CHECK(client.verdict(ends.accepting, answer) == "wrong_protocol");
    }
    {
        ForeignClient client;
        CHECK(client.verdict(ends.accepting, answer) == "wrong_protocol");
    }
    {
        ForeignClient client;
        client.offer(session);
        SSL_CTX_set_max_proto_version(client.context, TLS1_2_VERSION);
        CHECK(client.verdict(ends.accepting, answer) == "tls_version");
    }
    {
        ForeignClient client;
        client.offer(session);
        SSL_CTX_set_ciphersuites(client.context, "TLS_CHACHA20_POLY1305_SHA256");
        CHECK(client.verdict(ends.accepting, answer) == "no_shared_cipher");
    }
}

TEST_CASE("a plaintext peer gets nothing, not even an alert", "[wire][tls]") {
    const Ends ends;
    for (const std::string_view text : {"GET / HTTP/1.1\r\n\r\n", "hello", "\x16\x02 almost"}) {
        SecureChannel server(ends.accepting, test_now_s);
        Bytes answer;
        std::vector<SharedBytes> messages;
        CHECK(code_of(server.receive(as_bytes(text), answer, messages)) == "not_tls");
        CHECK(answer.empty());
        CHECK(code_of(server.receive(as_bytes(text), answer, messages)) == "not_tls");  // failed for good
    }
}

TEST_CASE("a handshake that never ends is cut at 16 KiB", "[wire][tls]") {
    const Ends ends;
    SecureChannel server(ends.accepting, test_now_s);
    Bytes answer;
    std::vector<SharedBytes> messages;
    Status status;
    // A ClientHello that declares 60 KB and comes in fragments.
    Bytes record = {std::byte{22}, std::byte{3}, std::byte{1}, std::byte{0x10}, std::byte{0}};
    record.resize(5 + 4096, std::byte{0});
    record[5] = std::byte{1};
    record[7] = std::byte{0xea};
    int sent = 0;
    for (; sent < 10 && status; ++sent) {
        status = server.receive(record, answer, messages);
    }
    CHECK_FALSE(status.has_value());
    CHECK(sent <= 5);
}

TEST_CASE("enrolment is served without a certificate, and ends at 16 KiB", "[wire][tls]") {
    const Ends ends;
    const auto joining = *ChannelContext::joining(*certificate_key_digest(ends.federation.authority.certificate));
    ChannelPair pair(joining, ends.accepting);
    pair.run();
    REQUIRE(pair.server.is_open());
    CHECK(pair.server.protocol() == ChannelProtocol::join);
    CHECK_FALSE(pair.server.peer().has_value());
    CHECK(pair.client.peer()->identity.role == Role::coordinator);
    REQUIRE(pair.client.send(Bytes(200), pair.to_server).has_value());
    pair.run();
    CHECK(pair.at_server.size() == 1);
    REQUIRE(pair.client.send(Bytes(20'000), pair.to_server).has_value());
    pair.run();
    CHECK(code_of(pair.server_status) == "handshake_too_long");
}

TEST_CASE("a joining node that meets another authority says nothing more", "[wire][tls]") {
    const Ends ends;
    const Federation other;
    ChannelPair pair(*ChannelContext::joining(*certificate_key_digest(other.authority.certificate)), ends.accepting);
    pair.run();
    CHECK(code_of(pair.client_status) == "unknown_ca");
    CHECK_FALSE(pair.server.is_open());
}

TEST_CASE("flipped, cut and random bytes end a session with a code, never a crash", "[wire][tls][fuzz]") {
    const std::uint64_t seed = 9;
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = "fuzz"});
    const Ends ends;
    for (int i = 0; i < 200; ++i) {
        ChannelPair pair(ends.connecting, ends.accepting);
        const bool after_handshake = random.below(2) == 0;
        if (after_handshake) {
            pair.run();
            REQUIRE(pair.client.send(Bytes(1 + random.below(40'000)), pair.to_server).has_value());
        }
        pair.to_server[random.below(pair.to_server.size())] ^= static_cast<std::byte>(1 + random.below(255));
        pair.run();
        CHECK(pair.at_server.empty());
    }
}

}  // namespace
}  // namespace causeway
