// Names of the message kinds, in the order of the variant and of the schema's union.
#include "wire/message.h"

#include <array>

namespace causeway {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Message>> names = {
    "heartbeat",   "error_notice", "bye",        "hello",       "progress",     "offer",        "decline",    "welcome",
    "assign",      "counted",      "refused",    "committed",   "dropped",      "ended",        "request",    "reply",
    "attach",      "pull",         "credit",     "chunk",       "transfer_end", "join_request", "join_reply", "roster",
    "stream_open", "stream_data",  "relay_open", "relay_frame", "relay_credit", "relay_end"};

}  // namespace

std::optional<ByteView> payload_of(const Message& message) {
    if (const auto* chunk = std::get_if<Chunk>(&message)) {
        return chunk->payload.view();
    }
    if (const auto* data = std::get_if<StreamData>(&message)) {
        return data->payload;
    }
    const auto* frame = std::get_if<RelayFrame>(&message);
    return frame ? std::optional<ByteView>(frame->payload) : std::nullopt;
}

std::string_view message_name(const Message& message) {
    return names[message.index()];
}

}  // namespace causeway
