// A failure as the message that tells a peer of it.
//
// threads  reentrant
#pragma once

#include "wire/message.h"

namespace causeway {

[[nodiscard]] inline ErrorNotice notice_of(const Error& error) {
    return {error.kind, error.code, error.message};
}

}  // namespace causeway
