// Names of the message kinds, in the order of the variant and of the schema's union.
#include "wire/message.h"

#include <array>

namespace causeway {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Message>> names = {
    "heartbeat", "error_notice", "bye",     "hello",     "progress",     "offer",        "decline",   "welcome",
    "assign",    "counted",      "refused", "committed", "dropped",      "ended",        "request",   "reply",
    "attach",    "pull",         "credit",  "chunk",     "transfer_end", "join_request", "join_reply"};

}  // namespace

std::string_view message_name(const Message& message) {
    return names[message.index()];
}

}  // namespace causeway
