// The fingerprints of revoked certificates, where the link thread can look at them without waiting for the store.
//
// The store thread publishes a whole new set after each revocation; readers see the old one or the new one. It holds a
// digest per revoked certificate, so a federation of a thousand nodes costs 32 KB.
// threads  thread-safe
#pragma once

#include <memory>
#include <set>
#include <utility>

#include "common/digest.h"
#include "common/published.h"

namespace causeway {

class Revocations {
public:
    void publish(std::set<Digest> fingerprints) {
        revoked_.store(std::make_shared<const std::set<Digest>>(std::move(fingerprints)));
    }
    [[nodiscard]] bool contains(const Digest& fingerprint) const {
        const auto revoked = revoked_.load();
        return revoked && revoked->contains(fingerprint);
    }

private:
    Published<std::set<Digest>> revoked_;
};

}  // namespace causeway
