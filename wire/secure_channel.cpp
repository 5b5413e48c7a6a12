// One TLS session over byte buffers, and the message framing inside it.
#include "wire/secure_channel.h"

#include <openssl/bio.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "wire/certificate_time.h"
#include "wire/tls_context.h"

namespace causeway {
namespace {

constexpr std::size_t record_bytes = 16384;  // of plaintext, the most that TLS allows
constexpr std::size_t length_bytes = 4;

struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
};

/// Both directions of the BIO: views that the caller's buffers stand behind for the length of one call.
struct Buffers {
    ByteView in;
    Bytes* out = nullptr;
};

int bio_write(BIO* bio, const char* data, int size) {
    auto& out = *static_cast<Buffers*>(BIO_get_data(bio))->out;
    const auto* first = reinterpret_cast<const std::byte*>(data);
    out.insert(out.end(), first, first + size);
    return size;
}

int bio_read(BIO* bio, char* data, int size) {
    auto& in = static_cast<Buffers*>(BIO_get_data(bio))->in;
    BIO_clear_retry_flags(bio);
    if (in.empty()) {
        BIO_set_retry_read(bio);
        return -1;
    }
    const auto count = std::min(in.size(), static_cast<std::size_t>(size));
    std::memcpy(data, in.data(), count);
    in = in.subspan(count);
    return static_cast<int>(count);
}

long bio_control(BIO*, int command, long, void*) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* buffer_bio() {
    static const BIO_METHOD* const method = [] {
        auto* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "causeway buffers");
        BIO_meth_set_write(made, bio_write);
        BIO_meth_set_read(made, bio_read);
        BIO_meth_set_ctrl(made, bio_control);
        return made;
    }();
    return method;
}

Error refused_peer(std::string code, std::string message) {
    return {ErrorKind::refused, std::move(code), std::move(message)};
}

/// What the other end told us by an alert, in words for the person at this end.
Error error_of_alert(int alert) {
    switch (alert) {
        case SSL_AD_CERTIFICATE_EXPIRED:
            return refused_peer("certificate_expired", "the peer says that our certificate has expired: join again");
        case SSL_AD_UNKNOWN_CA:
            return refused_peer("unknown_ca", "the peer does not know our authority: join its federation first");
        case SSL_AD_BAD_CERTIFICATE:
            return refused_peer(
                "bad_certificate",
                "the peer does not accept our certificate: compare the clocks of both machines, else join "
                "again with a new token");
        case SSL_AD_UNSUPPORTED_CERTIFICATE:
            return refused_peer("wrong_role",
                                "the peer says that our certificate is for another role or federation: use the state "
                                "folder that joined it, or join it with a token of its own");
        case SSL_AD_CERTIFICATE_REQUIRED:
            return refused_peer("no_certificate", "the peer demands a certificate: join its federation first");
        case SSL_AD_NO_APPLICATION_PROTOCOL:
            return refused_peer("wrong_protocol",
                                "the peer does not speak our protocol: is it a causeway coordinator?");
        case SSL_AD_PROTOCOL_VERSION:
            return refused_peer("tls_version", "the peer does not speak TLS 1.3");
        default:
            return refused_peer("peer_refused",
                                std::string("the peer ended the session: ") + SSL_alert_desc_string_long(alert));
    }
}

/// OpenSSL's reason as one of our codes.
Error error_of_reason(int reason) {
    if (reason >= SSL_AD_REASON_OFFSET) {
        return error_of_alert(reason - SSL_AD_REASON_OFFSET);
    }
    switch (reason) {
        case SSL_R_UNSUPPORTED_PROTOCOL:
        case SSL_R_VERSION_TOO_LOW:
            return refused_peer("tls_version", "the peer does not speak TLS 1.3");
        case SSL_R_NO_APPLICATION_PROTOCOL:
        case SSL_R_BAD_EXTENSION:
            return refused_peer("wrong_protocol", "the peer does not speak causeway/1: is it another program?");
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
            return refused_peer("no_certificate", "the peer shows no certificate: it must join with a token first");
        case SSL_R_NO_SHARED_CIPHER:
            return refused_peer("no_shared_cipher", "the peer does not offer AES-256-GCM");
        default: {
            const char* words = ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason));
            return {ErrorKind::corrupt, "bad_record",
                    std::string("the TLS stream is broken: ") + (words ? words : "?")};
        }
    }
}

}  // namespace

struct SecureChannel::State {
    std::shared_ptr<ChannelContext::State> context;
    TlsSession session;
    Buffers buffers;
    std::unique_ptr<SSL, FreeSsl> ssl;
    std::optional<Error> failure;
    bool open = false;
    ChannelProtocol protocol = ChannelProtocol::session;
    std::uint64_t received = 0;                // until open; all of an enrolment
    std::uint64_t records_sealed = 0;          // under the present key
    std::array<std::byte, length_bytes> head;  // of the message that is arriving
    std::size_t head_size = 0;
    std::uint32_t length = 0;  // of its body, once the head is here
    std::shared_ptr<std::byte[]> body;  // what has come of it; filling a message with zeros first would cost a pass
    std::size_t body_size = 0;
    std::size_t body_room = 0;

    Status fail_with(Error error) {
        failure = std::move(error);
        return fail(*failure);
    }

    /// Refuses what cannot be TLS before OpenSSL answers it: a plaintext peer gets nothing.
    Status check_first_bytes(ByteView sealed) {
        constexpr std::array<std::byte, 2> handshake_record = {std::byte{22}, std::byte{3}};
        const std::byte alert{21};
        for (std::size_t i = 0; i < sealed.size() && received + i < handshake_record.size(); ++i) {
            const auto at = static_cast<std::size_t>(received) + i;
            if (sealed[i] != handshake_record[at] && !(at == 0 && sealed[i] == alert)) {
                return fail_with(refused_peer("not_tls", "the peer does not speak TLS: plaintext is not served"));
            }
        }
        return {};
    }

    /// A handshake is bounded, and so is an enrolment's whole life.
    Status check_amount(std::size_t more) {
        const bool join = open && protocol == ChannelProtocol::join;
        if (open && !join) {
            return {};
        }
        received += more;
        const auto limit = join ? max_join_bytes : max_handshake_bytes;
        if (received > limit) {
            return fail_with({ErrorKind::overloaded, "handshake_too_long", "the peer sent more than 16 KiB to begin"});
        }
        return {};
    }

    /// After an SSL call that did not succeed: nothing when it only wants more bytes.
    Status after(int result) {
        const int kind = SSL_get_error(ssl.get(), result);
        if (kind == SSL_ERROR_WANT_READ) {
            return {};
        }
        if (kind == SSL_ERROR_ZERO_RETURN) {
            return fail_with({ErrorKind::disconnected, "closed", "the peer ended the session"});
        }
        const auto reason = ERR_GET_REASON(ERR_peek_error());
        ERR_clear_error();
        const auto why = session.refusal ? *session.refusal : error_of_reason(reason);
        const bool told = !session.refusal && why.code == "certificate_expired";
        return fail_with(told && context->own ? blame_for_expiry_alert(why, *context->own, session.now_s) : why);
    }

    /// One step of the handshake with what has come; open when it is through and the protocol is ours.
    Status handshake() {
        ERR_clear_error();
        if (const int result = SSL_do_handshake(ssl.get()); result != 1) {
            return after(result);
        }
        const unsigned char* name = nullptr;
        unsigned size = 0;
        SSL_get0_alpn_selected(ssl.get(), &name, &size);
        const std::string_view chosen(reinterpret_cast<const char*>(name), size);
        if (chosen != "causeway/1" && chosen != "causeway-join/1") {
            return fail_with(
                refused_peer("wrong_protocol", "the peer does not speak causeway/1: is it another program?"));
        }
        protocol = chosen == "causeway/1" ? ChannelProtocol::session : ChannelProtocol::join;
        open = true;
        return {};
    }

    /// Opens record by record, the body straight into its message. What is reserved follows what has arrived, not what
    /// a peer declares.
    Status read_messages(std::vector<SharedBytes>& messages) {
        for (;;) {
            std::size_t count = 0;
            if (head_size < length_bytes) {
                TRY_ASSIGN(count, read_some({head.data() + head_size, length_bytes - head_size}));
                head_size += count;
                if (head_size == length_bytes) {
                    TRY(begin_body());
                }
            } else {
                make_room();
                TRY_ASSIGN(count, read_some({body.get() + body_size, body_room - body_size}));
                body_size += count;
                if (body_size == length) {
                    const ByteView whole(body.get(), body_size);
                    messages.emplace_back(std::exchange(body, nullptr), whole);
                    head_size = body_size = body_room = 0;
                }
            }
            if (count == 0) {
                return {};
            }
        }
    }
    /// For a record at first, for the whole message when that is there.
    void make_room() {
        if (body_size < body_room) {
            return;
        }
        const auto room = body_room == 0 ? std::min<std::size_t>(record_bytes, length) : length;
        auto larger = std::make_shared_for_overwrite<std::byte[]>(room);
        std::copy_n(body.get(), body_size, larger.get());
        body = std::move(larger);
        body_room = room;
    }
    /// 0: nothing more for now.
    Result<std::size_t> read_some(std::span<std::byte> to) {
        std::size_t count = 0;
        ERR_clear_error();
        if (const int result = SSL_read_ex(ssl.get(), to.data(), to.size(), &count); result != 1) {
            TRY(after(result));
            return std::size_t{0};
        }
        return count;
    }
    Status begin_body() {
        std::memcpy(&length, head.data(), length_bytes);
        if (length == 0 || length > max_message_bytes) {
            return fail_with({ErrorKind::corrupt, "message_too_long",
                              "the peer declares a message of " + std::to_string(length) + " bytes"});
        }
        return {};
    }

    Status write(ByteView bytes) {
        std::size_t written = 0;
        ERR_clear_error();
        if (const int result = SSL_write_ex(ssl.get(), bytes.data(), bytes.size(), &written); result != 1) {
            return after(result);
        }
        records_sealed += (bytes.size() + record_bytes - 1) / record_bytes;
        return {};
    }
    /// Our own sending key; the peer renews its own.
    void renew_key_in_time() {
        if (records_sealed >= context->options.records_per_key) {
            SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED);  // goes out with the next record
            records_sealed = 0;
        }
    }
};

SecureChannel::SecureChannel(const ChannelContext& context, std::int64_t now_s) : state_(std::make_unique<State>()) {
    state_->context = context.state();
    state_->session.now_s = now_s;
    state_->ssl.reset(SSL_new(state_->context->ssl.get()));
    ASSERT(state_->ssl != nullptr);
    auto* ssl = state_->ssl.get();
    SSL_set_app_data(ssl, &state_->session);
    BIO* bio = BIO_new(buffer_bio());
    ASSERT(bio != nullptr);
    BIO_set_data(bio, &state_->buffers);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    if (state_->context->end == ChannelEnd::accepting) {
        SSL_set_accept_state(ssl);
    } else {
        SSL_set_connect_state(ssl);
    }
}
SecureChannel::SecureChannel(SecureChannel&&) noexcept = default;
SecureChannel& SecureChannel::operator=(SecureChannel&&) noexcept = default;
SecureChannel::~SecureChannel() = default;

Status SecureChannel::start(Bytes& out) {
    state_->buffers = {{}, &out};
    return state_->context->end == ChannelEnd::connecting ? state_->handshake() : Status();
}

Status SecureChannel::receive(ByteView sealed, Bytes& out, std::vector<SharedBytes>& messages) {
    auto& state = *state_;
    if (state.failure) {
        return fail(*state.failure);
    }
    TRY(state.check_first_bytes(sealed));
    TRY(state.check_amount(sealed.size()));
    state.buffers = {sealed, &out};
    if (!state.open) {
        TRY(state.handshake());
    }
    return state.open ? state.read_messages(messages) : Status();
}

Status SecureChannel::send(ByteView head, ByteView tail, Bytes& out) {
    auto& state = *state_;
    ASSERT(state.open);
    if (state.failure) {
        return fail(*state.failure);
    }
    const auto size = head.size() + tail.size();
    if (size == 0 || size > max_message_bytes) {
        return fail(ErrorKind::invalid, "message_too_long", "a message of " + std::to_string(size) + " bytes");
    }
    state.buffers = {{}, &out};
    out.reserve(out.size() + size + (size / record_bytes + 3) * 22 + 64);
    state.renew_key_in_time();
    // The first record holds the length and what else fits: a record of its own for each would cost 22 bytes.
    std::array<std::byte, record_bytes> first;
    std::size_t filled = 0;
    const auto fill = [&](ByteView& from) {
        const auto part = from.first(std::min(from.size(), first.size() - filled));
        if (!part.empty()) {
            std::memcpy(first.data() + filled, part.data(), part.size());
        }
        filled += part.size();
        from = from.subspan(part.size());
    };
    const auto length = static_cast<std::uint32_t>(size);
    auto start = std::as_bytes(std::span(&length, 1));
    fill(start);
    fill(head);
    fill(tail);
    TRY(state.write(ByteView(first).first(filled)));
    for (const auto rest : {head, tail}) {
        if (!rest.empty()) {
            TRY(state.write(rest));
        }
    }
    return {};
}

void SecureChannel::finish(Bytes& out) {
    if (state_->open && !state_->failure) {
        state_->buffers = {{}, &out};
        ERR_clear_error();
        SSL_shutdown(state_->ssl.get());
        ERR_clear_error();
    }
}

bool SecureChannel::is_open() const {
    return state_->open && !state_->failure;
}
ChannelProtocol SecureChannel::protocol() const {
    return state_->protocol;
}
const std::optional<PeerIdentity>& SecureChannel::peer() const {
    return state_->session.peer;
}

}  // namespace causeway
