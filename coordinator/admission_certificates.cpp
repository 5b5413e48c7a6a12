// Certificates after enrolment: renewal, unused tokens, and what an authority elsewhere signs. Part of Admission
// (admission.h).
#include "common/text.h"
#include "coordinator/admission.h"
#include "coordinator/audit_store.h"
#include "coordinator/run_history.h"
#include "wire/certificate_request.h"

namespace causeway {
namespace {

Json to_certificate_reply(const CertificateRecord& record) {
    return Json::object()
        .set("name", record.name)
        .set("role", record.role)
        .set("certificate", to_base64url(record.certificate))
        .set("expires_unix_s", record.expires_unix_s);
}

Result<Json> tokens_now(Store& store, std::int64_t now_s) {
    TRY_ASSIGN(const auto rows, EnrolmentStore(store.database()).tokens());
    auto tokens = Json::array();
    for (const auto& row : rows) {
        tokens.push(Json::object()
                        .set("name", row.name)
                        .set("role", row.role)
                        .set("expires_unix_s", row.expires_unix_s)
                        .set("expired", row.expires_unix_s <= now_s));
    }
    return Json::object().set("tokens", std::move(tokens));
}

Result<Json> requests_now(Store& store) {
    TRY_ASSIGN(const auto parked, EnrolmentStore(store.database()).parked());
    auto requests = Json::array();
    for (const auto& request : parked) {
        requests.push(Json::object()
                          .set("name", request.name)
                          .set("role", request.role)
                          .set("request", to_base64url(request.request))
                          .set("at_unix_s", request.at_unix_s));
    }
    return Json::object().set("requests", std::move(requests));
}

/// A certificate that the authority has signed for one of ours, in its time.
Result<CertificateRecord> judged(const Authority& authority, const Json& body, std::int64_t now_s) {
    const auto der = from_base64url(body["certificate"].text());
    if (!der || der->empty()) {
        return fail(ErrorKind::invalid, "missing_argument", "ca.import needs a certificate in base64url");
    }
    TRY_ASSIGN(const auto peer, verify_certificate(*der, {}, authority.certificate,
                                                   {Role::operator_, Role::client, Role::host, Role::aggregator},
                                                   authority.federation, now_s));
    TRY_ASSIGN(auto public_key, certificate_public_key(*der));
    return certificate_record(peer.identity.node, peer.identity.role, public_key, *der);
}

}  // namespace

void Admission::request(std::string_view verb, const Json& body, const PeerIdentity& asker, Answer done) {
    const auto& by = asker.identity.node;
    if (verb == "token.new") {
        new_token(body, by, std::move(done));
    } else if (verb == "token.list") {
        list_tokens(std::move(done));
    } else if (verb == "token.revoke") {
        withdraw_token(body, by, std::move(done));
    } else if (verb == "certificate.renew") {
        renew(body, asker, std::move(done));
    } else if (verb == "ca.requests") {
        list_requests(std::move(done));
    } else if (verb == "ca.import") {
        import(body, by, std::move(done));
    } else if (verb == "audit.show") {
        show_audit(body, std::move(done));
    } else if (verb == "experiment.log") {
        store_.run([body, done = std::move(done)](Store& store) { done(history_page(store.database(), body)); });
    } else if (verb == "backup.stage") {
        stage_backup(by, std::move(done));
    } else {
        done(fail(ErrorKind::unsupported, "unknown_verb", "the coordinator does not know this request"));
    }
}

void Admission::list_tokens(Answer done) {
    store_.run([now_s = options_.unix_now(), done = std::move(done)](Store& store) { done(tokens_now(store, now_s)); });
}

void Admission::withdraw_token(const Json& body, const std::string& by, Answer done) {
    const auto name = body["name"].text();
    if (name.empty()) {
        return done(fail(ErrorKind::invalid, "missing_argument", "token.revoke needs the token's name"));
    }
    store_.run([name, by, now_s = options_.unix_now(), done = std::move(done)](Store& store) {
        const auto withdrawn = EnrolmentStore(store.database()).withdraw_token(name, now_s, by);
        done(withdrawn ? Result<Json>(Json::object().set("name", name).set("state", "withdrawn"))
                       : Result<Json>(fail(withdrawn.error())));
    });
}

// The form is judged here, on the loop: a signature is checked in a tenth of a millisecond, and a bad one costs no
// transaction.
void Admission::renew(const Json& body, const PeerIdentity& asker, Answer done) {
    auto asked = read_renewal_body(body.dump(), asker.identity);
    if (!asked) {
        return done(fail(asked.error()));
    }
    RenewalRequest request{.name = asker.identity.node,
                           .role = std::string(to_string(asker.identity.role)),
                           .present = asker.fingerprint,
                           .public_key = std::move(asked->public_key),
                           .now_unix_s = options_.unix_now()};
    if (!options_.authority.signs_here()) {
        request.request = *from_base64url(body["request"].text());
    }
    store_.run([this, request = std::move(request), identity = asker.identity, done = std::move(done)](Store& store) {
        const auto sign = [&](const TokenRecord& token, const Bytes& key) -> Result<CertificateRecord> {
            TRY_ASSIGN(auto certificate, issue_certificate(options_.authority, key, identity, request.now_unix_s,
                                                           options_.limits->certificate_lifetime_s));
            return certificate_record(token.name, identity.role, key, std::move(certificate));
        };
        const auto record = EnrolmentStore(store.database()).renew(request, sign);
        done(record ? Result<Json>(to_certificate_reply(*record)) : Result<Json>(fail(record.error())));
    });
}

void Admission::list_requests(Answer done) {
    store_.run([done = std::move(done)](Store& store) { done(requests_now(store)); });
}

void Admission::import(const Json& body, const std::string& by, Answer done) {
    const auto now_s = options_.unix_now();
    auto record = judged(options_.authority, body, now_s);
    if (!record) {
        return done(fail(record.error()));
    }
    store_.run([record = *std::move(record), by, now_s, done = std::move(done)](Store& store) {
        const auto imported = EnrolmentStore(store.database()).import(record, now_s, by);
        done(imported ? Result<Json>(to_certificate_reply(record)) : Result<Json>(fail(imported.error())));
    });
}

void Admission::note_own_renewal(const CertificateFacts& facts) {
    store_.run([facts, now_s = options_.unix_now()](Store& store) {
        const auto detail = Json::object()
                                .set("node", facts.identity.node)
                                .set("role", to_string(facts.identity.role))
                                .set("fingerprint", facts.fingerprint.hex())
                                .set("expires_unix_s", facts.not_after_s);
        (void)AuditStore(store.database()).append(audit_line(now_s, "certificate.renewed", detail));
    });
}

}  // namespace causeway
