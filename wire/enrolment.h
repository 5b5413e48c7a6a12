// Enrolment: how a node with a token gets its certificate. Pure steps; wire/join.h carries them over the network.
//
// The node makes its key, connects with ALPN causeway-join/1, checks that the server's authority is the one the token
// names, and only then sends name, secret and public key with a signature by that key. The store decides in one
// transaction keyed by the public key, so a repeated request with the same key gets the same certificate, and any
// other use of the token is refused. The store keeps only the secret's SHA-256.
//
// threads  reentrant
#pragma once

#include <functional>

#include "wire/identity.h"
#include "wire/message.h"
#include "wire/token.h"

namespace causeway {

/// What the store is asked, once the request's form and signature have been judged.
struct EnrolmentClaim {
    std::string name;
    Digest secret;       // SHA-256 of the token's secret
    Bytes public_key;
    Bytes request;  // PKCS#10 for an authority elsewhere; judged, or empty
};
/// Makes the certificate for a role: called by the store inside its transaction when the token is fresh.
using Issue = std::function<Result<Bytes>(Role role)>;
/// The store's decision: the certificate (fresh, or the one this key got before), or a refusal.
///
/// errors   refused: unknown_token, token_expired, token_used, name_taken; see refuse_* below for the texts
using EnrolmentDecision = std::function<Result<Bytes>(const EnrolmentClaim& claim, const Issue& issue)>;

/// The node's request. errors: corrupt: the key cannot sign
Result<JoinRequest> make_join_request(const JoinToken& token, const KeyPair& key);

/// The coordinator's answer to a request.
///
/// errors  invalid: bad_name, bad_public_key; refused: bad_signature, or the store's; those of a certificate request
Result<JoinReply> answer_join_request(const Authority& authority, const JoinRequest& request, std::int64_t now_s,
                                      const EnrolmentDecision& store, std::int64_t lifetime_s = node_certificate_s);

/// The node judges what it got: its own key, its own name and role, signed by the token's authority.
///
/// errors  refused, corrupt
Result<Credentials> accept_join_reply(const JoinToken& token, const KeyPair& key, const JoinReply& reply,
                                      std::int64_t now_s);

// The store's refusals, so that their codes and texts are in one place.
Error unknown_token();
Error token_expired();
Error token_used();

}  // namespace causeway
