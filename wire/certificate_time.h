// Whose fault it is that a certificate is out of its time: the peer's, or this machine's clock. Pure.
//
// A certificate's time is judged by one clock alone, so what that clock says is compared with what else is known: when
// this program was built, and when this node's own certificate and the federation's authority were made.
#pragma once

#include <cstdint>
#include <optional>

#include "wire/identity.h"

namespace causeway {

struct TimeEvidence {
    Validity peer;
    std::optional<Validity> authority;
    std::optional<Validity> own;  // none: joining
    std::int64_t now_s = 0;
    std::int64_t built_s = 0;
};

/// Of a refusal `certificate_expired` or `certificate_not_yet_valid` of a peer: the same with words that name the clock
/// or the certificate that is wrong, with both times. Others come back as they are.
[[nodiscard]] Error blame_for_time(const Error& refusal, const TimeEvidence& evidence);

/// What a peer's alert that our certificate has expired means, by our own clock.
[[nodiscard]] Error blame_for_expiry_alert(const Error& alert, const Validity& own, std::int64_t now_s);

}  // namespace causeway
