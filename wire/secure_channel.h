// The secure channel: TLS 1.3 without I/O. Bytes in, bytes out, whole messages on the inside.
//
// AES-256-GCM only, mutual X.509, ALPN causeway/1; enrolment speaks causeway-join/1 without a client certificate. No
// tickets, PSK, early data or renegotiation. Inside the stream a message is u32 length and its bytes, so the frames
// that carry the sealed bytes have no meaning. A BIO of our own seals straight into the caller's buffer: 1.7 GB/s
// against 1.5 with OpenSSL's memory BIO (docs/performance.md). source: RFC 8446.
//
// threads  a channel and its context belong to one thread at a time (the link thread)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "wire/identity.h"
#include "wire/message.h"

namespace causeway {

enum class ChannelProtocol { session, join };  // causeway/1, causeway-join/1

/// The longest message inside the stream: its header, a chunk's payload and the header's length.
constexpr std::size_t max_message_bytes = 4 + max_header_bytes + max_chunk_bytes;
/// A sealed frame of one message: 22 bytes for each 16 KiB record, the length, and alerts or key updates beside it.
constexpr std::size_t max_sealed_bytes = max_message_bytes + (max_message_bytes / 16384 + 2) * 22 + 1024;
constexpr std::size_t max_handshake_bytes = 16 * 1024;  // received before the channel is open; a real one takes 3 KiB
constexpr std::size_t max_join_bytes = 16 * 1024;       // received in an enrolment session's whole life

struct ChannelOptions {
    /// New sending keys after this many records, well before AES-GCM's 2^24.5. source: RFC 8446, 5.5
    std::uint64_t records_per_key = std::uint64_t{1} << 22;
};

/// What all channels of one end share: certificate, key, whom to believe.
class ChannelContext {
public:
    struct State;

    /// Serves causeway/1 to the enrolled roles of our federation, and causeway-join/1 to anyone.
    ///
    /// errors  corrupt: the credentials cannot be used
    static Result<ChannelContext> accepting(const Credentials& credentials, ChannelOptions options = {});
    /// Speaks causeway/1 to a coordinator of our federation, and to nobody else.
    static Result<ChannelContext> connecting(const Credentials& credentials, ChannelOptions options = {});
    /// Between nodes: serves and speaks causeway/1 with clients and hosts of our federation, and with nobody else.
    /// Which of them is the link's to judge, by its roster.
    static Result<ChannelContext> accepting_nodes(const Credentials& credentials, ChannelOptions options = {});
    static Result<ChannelContext> connecting_to_nodes(const Credentials& credentials, ChannelOptions options = {});
    /// Speaks causeway-join/1 to the coordinator whose authority has this public key (SHA-256), and to nobody else.
    static Result<ChannelContext> joining(const Digest& authority_key);

    [[nodiscard]] const std::shared_ptr<State>& state() const { return state_; }

private:
    explicit ChannelContext(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

/// One TLS session. Every function that fails leaves it failed for good; `out` then holds the alert to pass on, if any.
class SecureChannel {
public:
    /// `now_s` judges the peer's certificate.
    SecureChannel(const ChannelContext& context, std::int64_t now_s);
    SecureChannel(SecureChannel&&) noexcept;
    SecureChannel& operator=(SecureChannel&&) noexcept;
    ~SecureChannel();

    /// The connecting end's first bytes; nothing at the accepting end.
    Status start(Bytes& out);

    /// Takes in all of `sealed`; appends what must be sent to `out` and whole messages to `messages`.
    ///
    /// errors  refused: a certificate's code (verify_certificate), not_tls, tls_version, wrong_protocol,
    ///         no_certificate, no_shared_cipher;
    ///         corrupt: bad_record, message_too_long; overloaded: handshake_too_long; disconnected: closed by the peer
    /// cost    reads and writes each byte once, plus one copy into the message, whose memory nothing has written before
    Status receive(ByteView sealed, Bytes& out, std::vector<SharedBytes>& messages);

    /// Seals one message, in one part or two, onto `out`. Only when open. errors: invalid `message_too_long`
    Status send(ByteView message, Bytes& out) { return send(message, {}, out); }
    Status send(ByteView head, ByteView tail, Bytes& out);

    /// Seals the end of our side (close_notify).
    void finish(Bytes& out);

    [[nodiscard]] bool is_open() const;
    /// Once open.
    [[nodiscard]] ChannelProtocol protocol() const;
    /// Once open; nobody at the accepting end of an enrolment.
    [[nodiscard]] const std::optional<PeerIdentity>& peer() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// decode (wire/message.h) of what a channel has received: a payload stays where it is.
[[nodiscard]] Result<Message> decode_received(const SharedBytes& bytes);

}  // namespace causeway
