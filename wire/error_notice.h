// A failure as the message that tells a peer of it. It may quote a third one's words: what is sent on is text.
//
// threads  reentrant
#pragma once

#include "common/printable.h"
#include "wire/message.h"

namespace causeway {

[[nodiscard]] inline ErrorNotice notice_of(const Error& error) {
    return {error.kind, printable(error.code, Lines::one), printable(error.message, Lines::many)};
}

}  // namespace causeway
