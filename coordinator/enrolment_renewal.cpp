// The second half of EnrolmentStore: successors of certificates, requests that wait for an authority elsewhere, and
// tokens that nobody has used. Thread: the store thread.
#include "coordinator/enrolment_store.h"
#include "wire/identity.h"

namespace causeway {
namespace {

// A node renews once in two thirds of a life and has two certificates at most; more are a fault or a flood.
constexpr std::int64_t most_live_certificates = 4;
constexpr const char* awaiting_code = "awaiting_signature";

Json line_of_renewal(const CertificateRecord& certificate) {
    return Json::object()
        .set("node", certificate.name)
        .set("role", certificate.role)
        .set("fingerprint", certificate.fingerprint.hex())
        .set("expires_unix_s", certificate.expires_unix_s);
}

}  // namespace

Error awaiting_signature(const std::string& name) {
    return {
        ErrorKind::timed_out, awaiting_code,
        "the certificate request of " + name +
            " waits for the federation's authority, which signs elsewhere: the "
            "operator exports it with `causeway ca requests --out DIR` and imports what was signed with `causeway ca "
            "import FILE`; ask again then"};
}

bool is_awaiting(const Error& error) {
    return error.code == awaiting_code;
}

// ---------------------------------------------------------------- renewal

// As in enrol: what is parked stays, though the answer says that there is no certificate yet.
Result<CertificateRecord> EnrolmentStore::renew(const RenewalRequest& request, const IssueCertificate& issue) {
    TRY_ASSIGN(auto known, certificate_of_key(request.name, request.public_key));
    if (known) {
        return known->revoked_unix_s || known->role != request.role
                   ? fail(ErrorKind::refused, "revoked", "the key of " + request.name + " was revoked; it cannot renew")
                   : Result<CertificateRecord>(*std::move(known));
    }
    Result<CertificateRecord> answer = fail(ErrorKind::io, "io", "");
    TRY(database_.transaction("renewal", [&]() -> Status {
        answer = renew_now(request, issue);
        return answer || is_awaiting(answer.error()) ? Status{} : fail(answer.error());
    }));
    return answer;
}

Result<CertificateRecord> EnrolmentStore::renew_now(const RenewalRequest& request, const IssueCertificate& issue) {
    TRY(check_renewal(request));
    if (!request.request.empty()) {
        TRY(park({request.name, request.role, request.public_key, request.request, request.now_unix_s}));
        return fail(awaiting_signature(request.name));
    }
    TRY_ASSIGN(auto certificate, issue({{}, request.name, request.role}, request.public_key));
    TRY(insert(certificate));
    TRY(audit(request.now_unix_s, "certificate.renewed", line_of_renewal(certificate)));
    return certificate;
}

/// Not before half of the present one's life, so that no identity can fill the store by asking.
Status EnrolmentStore::check_renewal(const RenewalRequest& request) {
    auto present = find_certificate(request.present);
    if (!present && present.error().kind != ErrorKind::not_found) {
        return fail(present.error());
    }
    if (present && present->revoked_unix_s) {
        return fail(ErrorKind::refused, "revoked", "the certificate of " + request.name + " was revoked");
    }
    if (present && request.now_unix_s < renewal_allowed_s({{}, present->issued_unix_s, present->expires_unix_s, {}})) {
        return fail(ErrorKind::refused, "renewal_not_due",
                    "the certificate of " + request.name +
                        " is in the first half of its life: ask when two thirds of "
                        "it are over, or compare the clocks");
    }
    TRY_ASSIGN(auto count, database_.prepare("SELECT COUNT(*) FROM certificates WHERE name = ? AND expires > ? AND "
                                             "revoked IS NULL"));
    TRY(count.bind(request.name, request.now_unix_s).next());
    if (count.integer(0) >= most_live_certificates) {
        return fail(ErrorKind::overloaded, "too_many_certificates",
                    request.name + " has several certificates in force already: it must use the newest of them");
    }
    return {};
}

// ---------------------------------------------------------------- an authority elsewhere

/// A renewal that waits is replaced by a later one of the same name: only one key can be next.
Status EnrolmentStore::park(const ParkedRequest& request) {
    TRY_ASSIGN(auto forget, database_.prepare("DELETE FROM requests WHERE name = ?"));
    TRY(forget.bind(request.name).run());
    TRY_ASSIGN(auto write, database_.prepare("INSERT INTO requests VALUES (?, ?, ?, ?, ?)"));
    return write.bind(request.public_key, request.name, request.role, request.request, request.at_unix_s).run();
}

Result<bool> EnrolmentStore::is_parked(const Bytes& public_key) {
    TRY_ASSIGN(auto query, database_.prepare("SELECT 1 FROM requests WHERE public_key = ?"));
    return query.bind(public_key).next();
}

Result<std::vector<ParkedRequest>> EnrolmentStore::parked() {
    TRY_ASSIGN(auto query, database_.prepare("SELECT name, role, public_key, request, at FROM requests ORDER BY name"));
    std::vector<ParkedRequest> requests;
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return requests;
        }
        requests.push_back({query.text(0), query.text(1), query.blob(2), query.blob(3), query.integer(4)});
    }
}

Status EnrolmentStore::import(const CertificateRecord& certificate, std::int64_t now_unix_s, const std::string& by) {
    return database_.transaction("import", [&]() -> Status {
        TRY_ASSIGN(auto query, database_.prepare("SELECT name, role FROM requests WHERE public_key = ?"));
        TRY_ASSIGN(const auto waits, query.bind(certificate.public_key).next());
        if (!waits) {
            return fail(ErrorKind::not_found, "unknown_request",
                        "no request of that key waits here; `causeway ca requests` lists those that do");
        }
        if (query.text(0) != certificate.name || query.text(1) != certificate.role) {
            return fail(ErrorKind::invalid, "wrong_certificate",
                        "the certificate is for " + certificate.role + " " + certificate.name + ", the request for " +
                            query.text(1) + " " + query.text(0) + ": sign the request as it is");
        }
        TRY_ASSIGN(auto before, certificate_of_name(certificate.name));
        TRY(insert(certificate));
        TRY_ASSIGN(auto forget, database_.prepare("DELETE FROM requests WHERE public_key = ?"));
        TRY(forget.bind(certificate.public_key).run());
        return audit(now_unix_s, before ? "certificate.renewed" : "node.enrolled",
                     line_of_renewal(certificate).set("by", by));
    });
}

/// Whether the name has a certificate in force: then a further one is its successor.
Result<bool> EnrolmentStore::certificate_of_name(const std::string& name) {
    TRY_ASSIGN(auto query, database_.prepare("SELECT 1 FROM certificates WHERE name = ? AND revoked IS NULL"));
    return query.bind(name).next();
}

// ---------------------------------------------------------------- unused tokens

Status EnrolmentStore::withdraw_token(const std::string& name, std::int64_t now_unix_s, const std::string& by) {
    return database_.transaction("token", [&]() -> Status {
        TRY_ASSIGN(auto query, database_.prepare("SELECT 1 FROM tokens WHERE name = ? AND used_by IS NULL"));
        TRY_ASSIGN(const auto exists, query.bind(name).next());
        if (!exists) {
            return fail(ErrorKind::not_found, "unknown_token",
                        "no unused token of the name " + name +
                            "; causeway token list shows those there are, and a "
                            "node that has joined is shut out with causeway node revoke");
        }
        TRY_ASSIGN(auto drop, database_.prepare("DELETE FROM tokens WHERE name = ? AND used_by IS NULL"));
        TRY(drop.bind(name).run());
        return audit(now_unix_s, "token.revoked", Json::object().set("node", name).set("by", by));
    });
}

Result<std::vector<TokenRow>> EnrolmentStore::tokens() {
    TRY_ASSIGN(auto query,
               database_.prepare("SELECT name, role, expires FROM tokens WHERE used_by IS NULL ORDER BY name"));
    std::vector<TokenRow> rows;
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return rows;
        }
        rows.push_back({query.text(0), query.text(1), query.integer(2)});
    }
}

}  // namespace causeway
