// See own_certificate.h.
#include "coordinator/own_certificate.h"

#include "common/log.h"
#include "coordinator/external_authority.h"
#include "wire/certificate_request.h"

namespace causeway {
namespace {

// A disk that is full is tried again, and a signed certificate is taken up, within this.
constexpr Duration look_interval = std::chrono::seconds(10);

}  // namespace

OwnCertificate::OwnCertificate(OwnCertificateOptions options) : options_(std::move(options)) {
    facts_ = read_certificate(options_.present.certificate).value_or(CertificateFacts{});
}

std::optional<Credentials> OwnCertificate::keep(Instant now, std::int64_t unix_s) {
    if (unix_s < renewal_due_s(facts_) || now < next_look_) {
        return std::nullopt;
    }
    auto renewed = options_.authority.signs_here() ? renew(unix_s) : await();
    if (!renewed) {
        next_look_ = now + look_interval;
        if (!std::exchange(asked_, true)) {
            log_warn("coordinator", "its own certificate is due to be renewed: " + renewed.error().message);
        }
        return std::nullopt;
    }
    options_.present = *renewed;
    facts_ = read_certificate(renewed->certificate).value_or(CertificateFacts{});
    asked_ = false;
    log_info("coordinator", "its own certificate has been renewed");
    return *std::move(renewed);
}

Result<Credentials> OwnCertificate::renew(std::int64_t unix_s) {
    const auto folder = options_.state / "coordinator";
    TRY_ASSIGN(const auto key, next_key(folder));
    TRY_ASSIGN(const auto certificate, issue_certificate(options_.authority, key.public_key, options_.present.identity,
                                                         unix_s, options_.lifetime_s()));
    return accept_renewal(folder, options_.present, certificate, unix_s);
}

/// The request is written once; then the folder tells.
Result<Credentials> OwnCertificate::await() {
    const auto folder = options_.state / "coordinator";
    TRY_ASSIGN(auto present, load_credentials(folder));
    if (present.certificate != options_.present.certificate) {
        return present;
    }
    if (!asked_) {
        TRY_ASSIGN(const auto key, next_key(folder));
        TRY(write_request_file(options_.state, key, options_.present.identity));
    }
    return fail(ErrorKind::timed_out, "awaiting_signature",
                "have " + (options_.state / "requests" / "coordinator.csr").string() +
                    " signed, then: causeway ca import FILE --state " + options_.state.string());
}

}  // namespace causeway
