// What arrives from the network: messages, TLS before and after the handshake, the two transfer machines, tokens, and
// join requests with whatever is signed inside. Certificates are made once; a handshake is most of a channel's cost.
// Thread: one.
#include <algorithm>

#include "tests/fuzz/targets.h"
#include "tests/wire/samples.h"
#include "wire/enrolment.h"
#include "wire/secure_channel.h"
#include "wire/token.h"
#include "wire/transfer.h"

namespace causeway {
namespace {

constexpr std::int64_t now_s = 1'900'000'000;

// ---------------------------------------------------------------- messages

std::vector<Bytes> message_seeds() {
    std::vector<Bytes> seeds;
    for (const auto& message : sample_messages()) {
        if (auto bytes = encode(message); bytes.size() < 4096) {
            seeds.push_back(std::move(bytes));
        }
    }
    return seeds;
}

/// What decodes has one canonical form, and that form decodes to itself.
void run_decode(ByteView input) {
    const auto message = decode(input);
    require_named(message);
    if (message) {
        const auto bytes = encode(*message);
        const auto again = decode(bytes);
        REQUIRE_FUZZ(again.has_value());
        REQUIRE_FUZZ(encode(*again) == bytes);  // not ==: a NaN is not equal to itself
    }
}

// ---------------------------------------------------------------- the secure channel

struct Ends {
    Authority authority = *make_authority("clinic", now_s);
    ChannelContext accepting = *ChannelContext::accepting(node(Role::coordinator, "coordinator"));
    ChannelContext connecting = *ChannelContext::connecting(node(Role::client, "site-a"));

    [[nodiscard]] Credentials node(Role role, const std::string& name) const {
        Credentials made{{authority.federation, role, name}, make_key(), {}, authority.certificate};
        made.certificate = *issue_certificate(authority, made.key.public_key, made.identity, now_s);
        return made;
    }
};

const Ends& ends() {
    static const Ends made;
    return made;
}

/// Hands over `input` in pieces whose length the input chooses.
void feed(SecureChannel& channel, ByteView input) {
    Bytes out;
    std::vector<SharedBytes> messages;
    const auto piece = input.empty() ? 1 : 1 + static_cast<std::size_t>(input.front()) * 7;
    for (std::size_t at = 0; at < input.size(); at += piece) {
        const auto status = channel.receive(input.subspan(at, std::min(piece, input.size() - at)), out, messages);
        if (!status) {
            require_named(status.error());
            return;
        }
    }
    REQUIRE_FUZZ(out.size() <= 4 * max_handshake_bytes);  // what a stranger can make us say
}

Bytes first_flight() {
    SecureChannel client(ends().connecting, now_s);
    Bytes out;
    REQUIRE_FUZZ(client.start(out).has_value());
    return out;
}

/// Before the handshake, at either end.
void run_handshake(ByteView input) {
    if (input.empty()) {
        return;
    }
    const bool at_server = (std::to_integer<int>(input.front()) & 1) == 0;
    SecureChannel channel(at_server ? ends().accepting : ends().connecting, now_s);
    Bytes hello;
    if (!at_server) {
        REQUIRE_FUZZ(channel.start(hello).has_value());
    }
    feed(channel, input.subspan(1));
    REQUIRE_FUZZ(!channel.is_open());
}

std::vector<Bytes> handshake_seeds() {
    const auto flight = first_flight();
    SecureChannel server(ends().accepting, now_s);
    Bytes answer;
    std::vector<SharedBytes> messages;
    REQUIRE_FUZZ(server.receive(flight, answer, messages).has_value());
    Bytes at_server{std::byte{0}};
    at_server.insert(at_server.end(), flight.begin(), flight.end());
    Bytes at_client{std::byte{1}};
    at_client.insert(at_client.end(), answer.begin(), answer.end());
    return {at_server, at_client};
}

/// After it: sealed bytes that nobody sealed, or an admitted peer's stream that is no sequence of messages.
void run_session(ByteView input) {
    if (input.size() < 2) {
        return;
    }
    SecureChannel client(ends().connecting, now_s);
    SecureChannel server(ends().accepting, now_s);
    Bytes to_server;
    Bytes to_client;
    std::vector<SharedBytes> messages;
    REQUIRE_FUZZ(client.start(to_server).has_value());
    for (int turn = 0; turn < 4; ++turn) {
        REQUIRE_FUZZ(server.receive(std::exchange(to_server, {}), to_client, messages).has_value());
        REQUIRE_FUZZ(client.receive(std::exchange(to_client, {}), to_server, messages).has_value());
    }
    REQUIRE_FUZZ(server.is_open() && client.is_open());
    if ((std::to_integer<int>(input.front()) & 1) == 0) {
        return feed(server, input.subspan(1));
    }
    Bytes sealed;
    REQUIRE_FUZZ(client.send(input.subspan(1), sealed).has_value());
    const auto damaged = std::to_integer<std::size_t>(input[1]) % sealed.size();
    sealed[damaged] ^= std::byte{0x80};
    feed(server, sealed);
}

std::vector<Bytes> session_seeds() {
    return {to_bytes("\x01hello"), to_bytes(std::string_view("\x00\x17\x03\x03\x00\x05"
                                                             "vwxyz",
                                                             11))};
}

// ---------------------------------------------------------------- transfers

/// Input is a list of words that a peer says to both machines; nothing it says may move them out of their blob.
void run_transfer(ByteView input) {
    ByteReader in(input);
    const auto total = in.get<std::uint32_t>().value_or(1);
    const auto held = std::min<std::uint64_t>(in.get<std::uint16_t>().value_or(0), total);
    Instant now{};
    TransferReceiver receiver(1, {}, total, held, now);
    auto sender = TransferSender::start(
        {1, {}, in.get<std::uint64_t>().value_or(0), in.get<std::uint32_t>().value_or(8)}, total, now);
    require_named(sender);
    for (int words = 0; words < 200; ++words) {
        const auto kind = in.get<std::uint8_t>();
        const auto value = in.get<std::uint64_t>();
        if (!kind || !value) {
            break;
        }
        now += Duration(*kind);
        Status judged;
        if (*kind % 3 == 0) {
            judged = receiver.accept({1, *value, in.get<std::uint32_t>().value_or(total), Bytes(*value % 4096)}, now);
            if (judged) {
                (void)receiver.written();
            }
        } else if (sender && *kind % 3 == 1) {
            judged = sender->credit({1, static_cast<std::uint32_t>(*value)}, now);
        } else if (sender) {
            while (const auto piece = sender->next()) {
                REQUIRE_FUZZ(piece->size > 0 && piece->size <= max_chunk_bytes && piece->offset + piece->size <= total);
            }
        }
        REQUIRE_FUZZ(receiver.position() <= total);
        if (!judged) {
            return require_named(judged.error());
        }
    }
}

std::vector<Bytes> transfer_seeds() {
    ByteWriter out;
    out.put(std::uint32_t{10'000});
    out.put(std::uint16_t{100});
    out.put(std::uint64_t{0});
    out.put(std::uint32_t{8});
    for (const auto kind : {std::uint8_t{2}, std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{0}}) {
        out.put(kind);
        out.put(std::uint64_t{kind == 0 ? 100U : 2U});
    }
    return {out.take()};
}

// ---------------------------------------------------------------- tokens and joining

JoinToken some_token() {
    return {.addresses = {{"192.0.2.7", 7400}, {"2001:db8::1", 7400}},
            .authority_key = sample_digest(3),
            .federation = "clinic",
            .role = Role::client,
            .name = "site-a",
            .secret = Bytes(token_secret_bytes, std::byte{7}),
            .expires_s = now_s};
}

void run_token(ByteView input) {
    const auto token = parse_token(as_text(input));
    require_named(token);
    if (token) {
        const auto again = parse_token(format_token(*token));
        REQUIRE_FUZZ(again && *again == *token);
    }
}

std::vector<Bytes> token_seeds() {
    return {to_bytes(format_token(some_token()))};
}

/// The store says yes to everything: what is left is the form and the signature.
void run_join(ByteView input) {
    const auto message = decode(input);
    if (const auto* request = message ? std::get_if<JoinRequest>(&*message) : nullptr) {
        require_named(
            answer_join_request(ends().authority, *request, now_s,
                                [](const EnrolmentClaim&, const Issue& issue) { return issue(Role::client); }));
    }
    if (const auto* reply = message ? std::get_if<JoinReply>(&*message) : nullptr) {
        static const auto key = make_key();
        require_named(accept_join_reply(some_token(), key, *reply, now_s));
    }
    require_named(read_certificate(input));
}

std::vector<Bytes> join_seeds() {
    const auto request = *make_join_request(some_token(), make_key());
    const auto node = ends().node(Role::client, "site-a");
    return {encode(request), encode(JoinReply{node.certificate, node.authority_certificate, "clinic"}),
            node.certificate};
}

constexpr FuzzTarget wire_targets_table[] = {
    {"decode", run_decode, message_seeds, 5000},  {"handshake", run_handshake, handshake_seeds, 1000},
    {"session", run_session, session_seeds, 100}, {"transfer", run_transfer, transfer_seeds, 5000},
    {"token", run_token, token_seeds, 5000},      {"join", run_join, join_seeds, 1000}};

}  // namespace

std::span<const FuzzTarget> wire_targets() {
    return wire_targets_table;
}

}  // namespace causeway
