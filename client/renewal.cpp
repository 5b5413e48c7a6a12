// See renewal.h.
#include "client/renewal.h"

#include <algorithm>

#include "common/json.h"
#include "wire/certificate_request.h"

namespace causeway::node {
namespace {

// A third of a life is 30 days: plenty of tries, and no load on the coordinator. With lives of seconds, in tests and
// drills, seconds.
constexpr Duration longest_pause = std::chrono::minutes(10);
constexpr std::int64_t tries = 20;

std::int64_t due_of(const Credentials& credentials) {
    const auto facts = read_certificate(credentials.certificate);
    return facts ? renewal_due_s(*facts) : 0;
}

Duration pause_of(const Credentials& credentials) {
    const auto facts = read_certificate(credentials.certificate);
    const auto left = facts ? (facts->not_after_s - renewal_due_s(*facts)) / tries : 0;
    return std::clamp<Duration>(std::chrono::seconds(left), std::chrono::seconds(1), longest_pause);
}

}  // namespace

Renewal::Renewal(std::filesystem::path folder, Credentials present)
    : folder_(std::move(folder)), present_(std::move(present)), due_s_(due_of(present_)) {}

std::optional<Request> Renewal::ask(Instant now, std::int64_t unix_s) {
    if (unix_s < due_s_ || now < ask_at_) {
        return std::nullopt;
    }
    ask_at_ = now + pause_of(present_);
    auto body = renewal_body(folder_, present_.identity);
    if (!body) {
        say("the certificate is due to be renewed, but its next key cannot be kept: " + body.error().message);
        return std::nullopt;
    }
    return Request{.id = ++last_request_, .verb = "certificate.renew", .body = *std::move(body)};
}

std::optional<Credentials> Renewal::hear(const Reply& reply, std::int64_t unix_s) {
    if (last_request_ == 0 || reply.id != last_request_) {
        return std::nullopt;
    }
    return take(reply, unix_s);
}

std::optional<Credentials> Renewal::take(const Reply& reply, std::int64_t unix_s) {
    if (reply.error) {
        say("the certificate is not renewed yet: " + reply.error->message);
        return std::nullopt;
    }
    const auto body = Json::parse(reply.body);
    const auto certificate = from_base64url(body ? (*body)["certificate"].text() : std::string());
    auto renewed = certificate
                       ? accept_renewal(folder_, present_, *certificate, unix_s)
                       : Result<Credentials>(fail(ErrorKind::corrupt, "bad_certificate", "no certificate came"));
    if (!renewed) {
        say("the renewed certificate cannot be used: " + renewed.error().message);
        return std::nullopt;
    }
    present_ = *renewed;
    due_s_ = due_of(present_);
    ask_at_ = unix_s < due_s_ ? Instant{} : ask_at_;  // one that is due already, by our clock, is not asked for at once
    say("the certificate of " + present_.identity.node + " has been renewed");
    last_said_.clear();
    return *std::move(renewed);
}

/// The same trouble every ten minutes is one line.
void Renewal::say(const std::string& line) {
    if (line != last_said_) {
        words_ = line;
        last_said_ = line;
    }
}

}  // namespace causeway::node
