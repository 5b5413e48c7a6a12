// The coordinator's own certificate over months: renewed in time, without a restart and without ending a session.
//
// Its own authority signs at once. An authority elsewhere gets a request in STATE/requests, and what it signed is
// noticed when `causeway ca import` has put it into the folder. Until then the present certificate is shown.
// Thread: loop.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "common/time.h"
#include "wire/identity.h"

namespace causeway {

struct OwnCertificateOptions {
    std::filesystem::path state;
    Authority authority;
    Credentials present;
    std::function<std::int64_t()> lifetime_s;
};

class OwnCertificate {
public:
    explicit OwnCertificate(OwnCertificateOptions options);

    /// To be called often: looks at the clock, and seldom at the disk. The new credentials, once they are in force on
    /// disk. cost: nothing, until two thirds of the life are over
    std::optional<Credentials> keep(Instant now, std::int64_t unix_s);

private:
    Result<Credentials> renew(std::int64_t unix_s);
    Result<Credentials> await();

    OwnCertificateOptions options_;
    CertificateFacts facts_;
    Instant next_look_{};
    bool asked_ = false;
};

}  // namespace causeway
