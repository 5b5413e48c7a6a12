// The judgement of a certificate that OpenSSL has read already, by an authority that is read once.
//
// OpenSSL 3 takes 150 us to read a certificate, twice what a signature takes to verify: it looks for the decoder of the
// key anew each time. A handshake has read the peer's; ours is the same in all of them. Internal to wire/, for .cpp
// files only. Threads: reentrant; an authority may be shared.
#pragma once

#include <memory>

#include <openssl/x509.h>

#include "wire/identity.h"

namespace causeway {

/// The authority that is held; nothing where only the digest of its key is known.
///
/// errors  corrupt `bad_certificate`
Result<std::shared_ptr<X509>> read_authority(const Trust& trust);

/// As verify_certificate (identity.h), with its errors.
Result<PeerIdentity> judge_certificate(X509* certificate, X509* authority, const std::vector<Role>& roles,
                                       std::string_view federation, std::int64_t now_s);

}  // namespace causeway
