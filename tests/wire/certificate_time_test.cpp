// Who is to blame for a certificate that is out of its time.
#include <catch2/catch.hpp>

#include "wire/certificate_time.h"

namespace causeway {
namespace {

constexpr std::int64_t built_s = 1'800'000'000;
constexpr std::int64_t made_s = built_s + 100 * day_s;  // the federation

/// A node whose certificate was made ten days after the federation, and a peer's ten days after that.
TimeEvidence at(std::int64_t now_s) {
    return {.peer = {made_s + 20 * day_s, made_s + 110 * day_s},
            .authority = Validity{made_s, made_s + 3650 * day_s},
            .own = Validity{made_s + 10 * day_s, made_s + 100 * day_s},
            .now_s = now_s,
            .built_s = built_s};
}

std::string blamed(const std::string& code, const TimeEvidence& evidence) {
    const auto error = blame_for_time({ErrorKind::refused, code, "words"}, evidence);
    CHECK(error.code == code);
    return error.message;
}

bool blames_the_peer(const std::string& words) {
    return words.starts_with("the peer's certificate");
}

}  // namespace

TEST_CASE("a clock before the build, the federation or the own certificate is blamed itself, not the peer",
          "[certificate_time]") {
    for (const auto now_s : {built_s - 400 * day_s, built_s + day_s, made_s + 5 * day_s}) {
        const auto words = blamed("certificate_not_yet_valid", at(now_s));
        CHECK(words.starts_with("this machine's clock says "));
        CHECK(words.find("it is behind") != std::string::npos);
    }
}

TEST_CASE("a clock at which the own certificate, or the authority, is over too is blamed itself",
          "[certificate_time]") {
    const auto later = blamed("certificate_expired", at(made_s + 400 * day_s));
    CHECK(later.starts_with("this machine's clock says "));
    CHECK(later.find("own certificate has expired too") != std::string::npos);
    CHECK(blamed("certificate_expired", at(made_s + 4000 * day_s)).find("authority ended") != std::string::npos);
    auto joining = at(built_s - 400 * day_s);
    joining.own.reset();
    joining.authority.reset();
    CHECK(blamed("certificate_not_yet_valid", joining).find("before this program was built") != std::string::npos);
}

TEST_CASE("a peer is blamed where this clock fits all that is known", "[certificate_time]") {
    auto evidence = at(made_s + 50 * day_s);
    evidence.peer = {made_s - 200 * day_s, made_s - 110 * day_s};
    CHECK(blames_the_peer(blamed("certificate_expired", evidence)));
    evidence.peer = {made_s + 300 * day_s, made_s + 390 * day_s};
    CHECK(blames_the_peer(blamed("certificate_not_yet_valid", evidence)));
    evidence.own.reset();
    CHECK(blames_the_peer(blamed("certificate_not_yet_valid", evidence)));
    CHECK(blame_for_time({ErrorKind::refused, "unknown_ca", "words"}, evidence).message == "words");
}

TEST_CASE("a peer's word that we have expired is believed only where our clock agrees", "[certificate_time]") {
    const Error alert{ErrorKind::refused, "certificate_expired", "join again"};
    const Validity own{made_s, made_s + 90 * day_s};
    CHECK(blame_for_expiry_alert(alert, own, made_s + 91 * day_s) == alert);
    CHECK(blame_for_expiry_alert(alert, own, made_s + 10 * day_s).message.find("one of the two clocks") !=
          std::string::npos);
}

}  // namespace causeway
