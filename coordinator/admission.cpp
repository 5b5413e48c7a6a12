// The judging of a request is wire/enrolment.h's; the transaction is enrolment_store.h's; this file joins the two.
#include "coordinator/admission.h"

#include "coordinator/audit_store.h"
#include "wire/enrolment.h"
#include "wire/error_notice.h"

namespace causeway {
namespace {

constexpr std::int64_t longest_token_s = 30 * day_s;
constexpr std::size_t most_noted = 1000;

Result<JoinToken> make_token(const AdmissionOptions& options, const Digest& authority_key, const Json& body) {
    JoinToken token{.addresses = options.token_addresses, .authority_key = authority_key};
    token.federation = options.authority.federation;
    token.name = body["name"].text();
    TRY(check_name(token.name, "the node's name"));
    TRY_ASSIGN(token.role, role_from(body["role"].text("client")));
    const auto lifetime = body["expires_seconds"].integer();
    if (token.role == Role::coordinator) {
        return fail(ErrorKind::invalid, "bad_role", "a token can be for a client, host, aggregator or operator");
    }
    if (lifetime < 1 || lifetime > longest_token_s) {
        return fail(ErrorKind::invalid, "bad_expiry", "a token lasts from 1s to 30d");
    }
    token.expires_s = options.unix_now() + lifetime;
    token.secret = secret_random_bytes(token_secret_bytes);
    return token;
}

Json describe(const JoinToken& token) {
    return Json::object()
        .set("event", "token")
        .set("token", format_token(token))
        .set("name", token.name)
        .set("role", to_string(token.role))
        .set("expires_unix_s", token.expires_s);
}

/// One transaction: the token is used and the certificate issued, or neither.
Result<Bytes> decide(Store& store, const EnrolmentClaim& claim, const Issue& issue, const Authority& authority,
                     std::int64_t now_s) {
    EnrolmentStore enrolment(store.database());
    EnrolmentRequest request{
        .name = claim.name, .secret_sha256 = claim.secret, .public_key = claim.public_key, .now_unix_s = now_s};
    if (!authority.signs_here()) {
        if (claim.request.empty()) {
            return fail(ErrorKind::unsupported, "no_certificate_request",
                        "the federation's authority is elsewhere and needs a certificate request, which this node's "
                        "version does not send: upgrade it");
        }
        request.request = claim.request;
    }
    const auto sign = [&](const TokenRecord& token, const Bytes& public_key) -> Result<CertificateRecord> {
        TRY_ASSIGN(const auto role, role_from(token.role));
        TRY_ASSIGN(auto certificate, issue(role));
        return certificate_record(token.name, role, public_key, std::move(certificate));
    };
    TRY_ASSIGN(auto record, enrolment.enrol(request, sign));
    return std::move(record.certificate);
}

/// A stranger without a token's secret can cause no line: only refusals of tokens that exist are kept.
bool is_worth_a_line(const Error& refusal) {
    return refusal.kind == ErrorKind::refused && refusal.code != "token_unknown" && refusal.code != "bad_signature";
}

}  // namespace

Result<CertificateRecord> certificate_record(const std::string& name, Role role, const Bytes& public_key,
                                             Bytes certificate) {
    TRY_ASSIGN(const auto facts, read_certificate(certificate));
    return CertificateRecord{.fingerprint = facts.fingerprint,
                             .name = name,
                             .role = std::string(to_string(role)),
                             .public_key = public_key,
                             .certificate = std::move(certificate),
                             .issued_unix_s = facts.not_before_s,
                             .expires_unix_s = facts.not_after_s,
                             .revoked_unix_s = std::nullopt};
}

Error revoked_error() {
    return {ErrorKind::refused, "revoked",
            "this identity was revoked by an operator of the federation; to come back, ask for a new token and join "
            "with a new state folder"};
}

Admission::Admission(AdmissionOptions options, StoreThread& store) : options_(std::move(options)), store_(store) {
    const auto key = certificate_key_digest(options_.authority.certificate);
    ASSERT(key.has_value());
    authority_key_ = *key;
}

void Admission::new_token(const Json& body, const std::string& by, Answer done) {
    auto token = make_token(options_, authority_key_, body);
    if (!token) {
        return done(fail(token.error()));
    }
    store_.run([token = *std::move(token), by, now_s = options_.unix_now(), done = std::move(done)](Store& store) {
        EnrolmentStore enrolment(store.database());
        const TokenRecord record{.secret_sha256 = sha256(token.secret),
                                 .name = token.name,
                                 .role = std::string(to_string(token.role)),
                                 .expires_unix_s = token.expires_s,
                                 .made_by = by};
        const auto added = enrolment.add_token(record, now_s);
        done(added ? Result<Json>(describe(token)) : Result<Json>(fail(added.error())));
    });
}

/// True once for each kind of refusal, and never when very many kinds have been seen: peers choose the words.
bool Admission::note_first(const std::string& refusal) {
    return noted_.size() < most_noted && noted_.insert(refusal).second;
}

void Admission::enrol(const JoinRequest& request, std::function<void(Message)> done) {
    store_.run([this, request, now_s = options_.unix_now(), done = std::move(done)](Store& store) {
        const auto reply = answer_join_request(
            options_.authority, request, now_s,
            [&](const EnrolmentClaim& claim, const Issue& issue) {
                return decide(store, claim, issue, options_.authority, now_s);
            },
            options_.limits->certificate_lifetime_s);
        if (reply) {
            done(*reply);
            return;
        }
        const auto& refusal = reply.error();
        if (is_worth_a_line(refusal) && note_first(request.name + " " + refusal.code)) {
            const auto detail = Json::object().set("node", request.name).set("code", refusal.code);
            (void)AuditStore(store.database()).append(audit_line(now_s, "enrolment.refused", detail));
        }
        done(notice_of(refusal));
    });
}

}  // namespace causeway
