// See certificate_time.h.
#include "wire/certificate_time.h"

#include <ctime>

#include <fmt/format.h>

namespace causeway {
namespace {

std::string utc_minute(std::int64_t unix_s) {
    const std::time_t time = unix_s;
    std::tm parts{};
    char text[32] = {};
    ::gmtime_r(&time, &parts);
    return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts));
}

std::string words_for_time(bool expired, const TimeEvidence& evidence) {
    const auto clock = "this machine's clock says " + utc_minute(evidence.now_s);
    const auto before = [&](const std::optional<Validity>& known) {
        return known && evidence.now_s < known->not_before_s;
    };
    const auto after = [&](const std::optional<Validity>& known) {
        return known && evidence.now_s >= known->not_after_s;
    };
    if (evidence.now_s < evidence.built_s - clock_tolerance_s) {
        return fmt::format("{}, before this program was built ({}): it is behind; set it", clock,
                           utc_minute(evidence.built_s));
    }
    if (before(evidence.own) || before(evidence.authority)) {
        const auto& made = before(evidence.own) ? evidence.own : evidence.authority;
        return fmt::format("{}, before {} was made ({}): it is behind now, or that clock was ahead then; set the clock",
                           clock, before(evidence.own) ? "its own certificate" : "the federation's authority",
                           utc_minute(made->not_before_s));
    }
    if (after(evidence.authority)) {
        return fmt::format(
            "{}, after the federation's authority ended ({}): if the clock is right, a new federation is "
            "needed; else set it",
            clock, utc_minute(evidence.authority->not_after_s));
    }
    if (expired && after(evidence.own)) {
        return fmt::format(
            "{}, when its own certificate has expired too ({}): if the clock is ahead, set it; else both "
            "must join again",
            clock, utc_minute(evidence.own->not_after_s));
    }
    if (expired) {
        return fmt::format("the peer's certificate expired at {}, and {}: the peer must join again",
                           utc_minute(evidence.peer.not_after_s), clock);
    }
    return fmt::format(
        "the peer's certificate begins at {}, and {}, which fits {}: the clock that issued it was ahead, and "
        "the peer must join again; or this clock is behind",
        utc_minute(evidence.peer.not_before_s), clock, evidence.own ? "its own certificate" : "the time of this build");
}

}  // namespace

Error blame_for_time(const Error& refusal, const TimeEvidence& evidence) {
    const bool expired = refusal.code == "certificate_expired";
    if (!expired && refusal.code != "certificate_not_yet_valid") {
        return refusal;
    }
    return {refusal.kind, refusal.code, words_for_time(expired, evidence)};
}

Error blame_for_expiry_alert(const Error& alert, const Validity& own, std::int64_t now_s) {
    if (now_s >= own.not_after_s) {
        return alert;
    }
    return {alert.kind, alert.code,
            fmt::format(
                "the peer says that our certificate has expired, and by this machine's clock ({}) it is valid until "
                "{}: one of the two clocks is wrong; compare them",
                utc_minute(now_s), utc_minute(own.not_after_s))};
}

}  // namespace causeway
