// The three steps of an enrolment.
#include "wire/enrolment.h"

#include "wire/certificate_request.h"

namespace causeway {
namespace {

/// What the node signs: it ties secret and name to the key, so that nobody enrols another's key.
Bytes signed_claim(ByteView secret, std::string_view name) {
    ByteWriter claim;
    claim.put_bytes(as_bytes("causeway-join"));
    claim.put_bytes(secret);
    claim.put_bytes(as_bytes(name));
    return claim.take();
}

/// The request for an authority elsewhere is for the same key and name; the role is the token's, judged by who signs.
Status check_enclosed(const JoinRequest& request) {
    if (request.request.empty()) {
        return {};
    }
    TRY_ASSIGN(const auto enclosed, read_certificate_request(request.request));
    if (enclosed.public_key != request.public_key || enclosed.identity.node != request.name) {
        return fail(ErrorKind::invalid, "bad_certificate_request",
                    "the certificate request is refused: it is for another key or name than the enrolment");
    }
    return {};
}

tl::unexpected<Error> wrong_reply(std::string message) {
    return fail(ErrorKind::refused, "wrong_certificate", std::move(message) + ": ask for a new token");
}

}  // namespace

Result<JoinRequest> make_join_request(const JoinToken& token, const KeyPair& key) {
    TRY_ASSIGN(auto signature, sign(key, signed_claim(token.secret, token.name)));
    TRY_ASSIGN(auto request, make_certificate_request(key, {token.federation, token.role, token.name}));
    return JoinRequest{token.name, token.secret, key.public_key, std::move(signature), std::move(request)};
}

// Form first, then possession of the key, then the store: a stranger without a key costs no transaction.
Result<JoinReply> answer_join_request(const Authority& authority, const JoinRequest& request, std::int64_t now_s,
                                      const EnrolmentDecision& store, std::int64_t lifetime_s) {
    TRY(check_name(request.name, "the node's name"));
    TRY(check_public_key(request.public_key));
    if (!verify_signature(request.public_key, signed_claim(request.secret, request.name), request.signature)) {
        return fail(ErrorKind::refused, "bad_signature", "the request is not signed by the key it names");
    }
    const Issue issue = [&](Role role) {
        return issue_certificate(authority, request.public_key, {authority.federation, role, request.name}, now_s,
                                 lifetime_s);
    };
    TRY(check_enclosed(request));
    TRY_ASSIGN(auto certificate,
               store({request.name, sha256(request.secret), request.public_key, request.request}, issue));
    return JoinReply{std::move(certificate), authority.certificate, authority.federation};
}

// A coordinator that keeps its side of the token has nothing to fear from these checks; they guard against a mixed-up
// store and against a reply for somebody else.
Result<Credentials> accept_join_reply(const JoinToken& token, const KeyPair& key, const JoinReply& reply,
                                      std::int64_t now_s) {
    TRY_ASSIGN(const auto authority_key, certificate_key_digest(reply.ca_certificate));
    if (authority_key != token.authority_key) {
        return wrong_reply("the coordinator answered with another authority than the token names");
    }
    TRY_ASSIGN(auto peer,
               verify_certificate(reply.certificate, {}, reply.ca_certificate, {token.role}, token.federation, now_s));
    if (peer.identity.node != token.name) {
        return wrong_reply("the certificate is for " + peer.identity.node + ", the token for " + token.name);
    }
    TRY_ASSIGN(const auto certified, certificate_key_digest(reply.certificate));
    if (certified != sha256(key.public_key)) {
        return wrong_reply("the certificate is for another key than this node's");
    }
    return Credentials{std::move(peer.identity), key, reply.certificate, reply.ca_certificate};
}

Error unknown_token() {
    return {ErrorKind::refused, "unknown_token", "this token was not issued here, or was withdrawn: ask for a new one"};
}
Error token_expired() {
    return {ErrorKind::refused, "token_expired", "the token has expired by the coordinator's clock: ask for a new one"};
}
Error token_used() {
    return {ErrorKind::refused, "token_used",
            "the token has been used by another key: start with the state folder that used it, or ask for a new one"};
}

}  // namespace causeway
