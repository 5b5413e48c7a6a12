// Every decision and its write stand in one transaction, so a kill between them cannot use up a token without
// issuing, nor issue twice. Secrets are compared as SHA-256 values of 256 random bits: finding one by an index leaks
// nothing useful.
#include "coordinator/enrolment_store.h"

#include "coordinator/audit_store.h"

namespace causeway {
namespace {

const std::string all_columns =
    "SELECT fingerprint, name, role, public_key, certificate, issued, expires, revoked FROM certificates ";

Result<CertificateRecord> record_of(const Statement& row) {
    CertificateRecord record;
    TRY_ASSIGN(record.fingerprint, row.digest(0));
    record.name = row.text(1);
    record.role = row.text(2);
    record.public_key = row.blob(3);
    record.certificate = row.blob(4);
    record.issued_unix_s = row.integer(5);
    record.expires_unix_s = row.integer(6);
    if (!row.is_null(7)) {
        record.revoked_unix_s = row.integer(7);
    }
    return record;
}

tl::unexpected<Error> refuse(std::string code, std::string message) {
    return fail(ErrorKind::refused, std::move(code), std::move(message));
}

}  // namespace

Status EnrolmentStore::add_token(const TokenRecord& token, std::int64_t now_unix_s) {
    return database_.transaction("token", [&]() -> Status {
        TRY_ASSIGN(const auto taken, name_is_taken(token.name, now_unix_s));
        if (taken) {
            return refuse("name_taken", "the name " + token.name +
                                            " is in use in this federation; choose another, or free it first: " +
                                            "causeway node revoke " + token.name +
                                            " if a node has it, causeway token revoke " + token.name +
                                            " if an unused token has it");
        }
        // An unused token that expired makes room for its successor.
        TRY_ASSIGN(auto drop, database_.prepare("DELETE FROM tokens WHERE name = ? AND used_by IS NULL"));
        TRY(drop.bind(token.name).run());
        TRY_ASSIGN(auto write, database_.prepare("INSERT INTO tokens VALUES (?, ?, ?, ?, NULL)"));
        TRY(write.bind(token.secret_sha256, token.name, token.role, token.expires_unix_s).run());
        return audit(now_unix_s, "token.new",
                     Json::object()
                         .set("node", token.name)
                         .set("role", token.role)
                         .set("expires_unix_s", token.expires_unix_s)
                         .set("by", token.made_by));
    });
}

Result<bool> EnrolmentStore::name_is_taken(const std::string& name, std::int64_t now_unix_s) {
    TRY_ASSIGN(auto query,
               database_.prepare("SELECT 1 FROM certificates WHERE name = ? AND revoked IS NULL "
                                 "UNION SELECT 1 FROM requests WHERE name = ? "
                                 "UNION SELECT 1 FROM tokens WHERE name = ? AND used_by IS NULL AND expires > ?"));
    return query.bind(name, name, name, now_unix_s).next();
}

// What is parked stays parked, though the answer is a refusal: it is the one that says "ask again".
Result<CertificateRecord> EnrolmentStore::enrol(const EnrolmentRequest& request, const IssueCertificate& issue) {
    Result<CertificateRecord> answer = fail(ErrorKind::io, "io", "");
    TRY(database_.transaction("enrolment", [&]() -> Status {
        answer = enrol_now(request, issue);
        return answer || is_awaiting(answer.error()) ? Status{} : fail(answer.error());
    }));
    return answer;
}

Result<CertificateRecord> EnrolmentStore::enrol_now(const EnrolmentRequest& request, const IssueCertificate& issue) {
    TRY_ASSIGN(auto query,
               database_.prepare("SELECT name, role, expires, used_by FROM tokens WHERE secret_sha256 = ?"));
    TRY_ASSIGN(const auto exists, query.bind(request.secret_sha256).next());
    if (!exists) {
        return refuse("token_unknown", "no such token: ask the operator for a new one (causeway token new)");
    }
    const TokenRecord token{request.secret_sha256, query.text(0), query.text(1), query.integer(2)};
    if (token.name != request.name) {
        return refuse("token_name", "the token was made for another name than " + request.name);
    }
    if (!query.is_null(3)) {
        return query.blob(3) == request.public_key
                   ? repeat_answer(request)
                   : refuse("token_used", "the token of " + request.name +
                                              " was used by another node; tokens work once: ask for a new one");
    }
    if (token.expires_unix_s <= request.now_unix_s) {
        return refuse("token_expired", "the token of " + request.name + " has expired: ask for a new one");
    }
    // From here on an error undoes everything: a signature that failed has not used the token up.
    TRY_ASSIGN(auto use, database_.prepare("UPDATE tokens SET used_by = ? WHERE secret_sha256 = ?"));
    TRY(use.bind(request.public_key, request.secret_sha256).run());
    if (!request.request.empty()) {
        TRY(park({token.name, token.role, request.public_key, request.request, request.now_unix_s}));
        return fail(awaiting_signature(token.name));
    }
    TRY_ASSIGN(auto certificate, issue(token, request.public_key));
    TRY(insert(certificate));
    TRY(audit(request.now_unix_s, "node.enrolled",
              Json::object()
                  .set("node", certificate.name)
                  .set("role", certificate.role)
                  .set("fingerprint", certificate.fingerprint.hex())));
    return certificate;
}

Result<CertificateRecord> EnrolmentStore::repeat_answer(const EnrolmentRequest& request) {
    TRY_ASSIGN(auto known, certificate_of_key(request.name, request.public_key));
    TRY_ASSIGN(const auto waits, is_parked(request.public_key));
    if (!known && waits) {
        return fail(awaiting_signature(request.name));
    }
    if (!known || known->revoked_unix_s) {
        return refuse("revoked", "the node " + request.name + " was revoked; it cannot join with this token again");
    }
    return *std::move(known);
}

/// The first certificate issued to that key.
Result<std::optional<CertificateRecord>> EnrolmentStore::certificate_of_key(const std::string& name,
                                                                            const Bytes& public_key) {
    TRY_ASSIGN(auto query, database_.prepare(all_columns +
                                             "WHERE name = ? AND public_key = ? ORDER BY issued, fingerprint LIMIT 1"));
    TRY_ASSIGN(const auto exists, query.bind(name, public_key).next());
    if (!exists) {
        return std::optional<CertificateRecord>{};
    }
    TRY_ASSIGN(auto record, record_of(query));
    return std::optional(std::move(record));
}

Status EnrolmentStore::insert(const CertificateRecord& certificate) {
    TRY_ASSIGN(auto write, database_.prepare("INSERT INTO certificates VALUES (?, ?, ?, ?, ?, ?, ?, NULL)"));
    return write
        .bind(certificate.fingerprint, certificate.name, certificate.role, certificate.public_key,
              certificate.certificate, certificate.issued_unix_s, certificate.expires_unix_s)
        .run();
}

Status EnrolmentStore::adopt(const CertificateRecord& certificate) {
    return database_.transaction("certificate", [&]() -> Status {
        TRY_ASSIGN(auto known, database_.prepare("SELECT 1 FROM certificates WHERE fingerprint = ?"));
        TRY_ASSIGN(const auto exists, known.bind(certificate.fingerprint).next());
        if (exists) {
            return {};
        }
        TRY(insert(certificate));
        TRY_ASSIGN(auto inherit,
                   database_.prepare("UPDATE certificates SET revoked = (SELECT MAX(revoked) FROM certificates "
                                     "WHERE public_key = ?) WHERE fingerprint = ?"));
        return inherit.bind(certificate.public_key, certificate.fingerprint).run();
    });
}

Result<CertificateRecord> EnrolmentStore::find_certificate(const Digest& fingerprint) {
    TRY_ASSIGN(auto query, database_.prepare(all_columns + "WHERE fingerprint = ?"));
    TRY_ASSIGN(const auto exists, query.bind(fingerprint).next());
    if (!exists) {
        return fail(ErrorKind::not_found, "unknown_certificate", "this coordinator issued no such certificate");
    }
    return record_of(query);
}

Status EnrolmentStore::revoke(const std::string& name, std::int64_t now_unix_s, const std::string& by) {
    return database_.transaction("revocation", [&]() -> Status {
        TRY_ASSIGN(auto query, database_.prepare("SELECT 1 FROM certificates WHERE name = ? AND revoked IS NULL"));
        TRY_ASSIGN(const auto certified, query.bind(name).next());
        // A token whose text was lost (a kill before the reply) would keep its name until it expires.
        TRY_ASSIGN(auto drop, database_.prepare("DELETE FROM tokens WHERE name = ? AND used_by IS NULL RETURNING 1"));
        TRY_ASSIGN(const auto invited, drop.bind(name).next());
        TRY_ASSIGN(auto forget, database_.prepare("DELETE FROM requests WHERE name = ? RETURNING 1"));
        TRY_ASSIGN(const auto waits, forget.bind(name).next());
        if (!certified && !invited && !waits) {
            return fail(ErrorKind::not_found, "unknown_node",
                        "no node of the name " + name + " can be revoked; causeway node list shows those there are");
        }
        TRY_ASSIGN(auto write,
                   database_.prepare("UPDATE certificates SET revoked = ? WHERE name = ? AND revoked IS NULL"));
        TRY(write.bind(now_unix_s, name).run());
        return audit(now_unix_s, "node.revoked", Json::object().set("node", name).set("by", by));
    });
}

Result<std::set<Digest>> EnrolmentStore::revoked() {
    TRY_ASSIGN(auto query, database_.prepare("SELECT fingerprint FROM certificates WHERE revoked IS NOT NULL"));
    std::set<Digest> fingerprints;
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return fingerprints;
        }
        TRY_ASSIGN(const auto fingerprint, query.digest(0));
        fingerprints.insert(fingerprint);
    }
}

// A line names the time and the event first, so that a list of them reads well.
Status EnrolmentStore::audit(std::int64_t now_unix_s, const char* event, Json detail) {
    TRY(AuditStore(database_).add(audit_line(now_unix_s, event, std::move(detail))));
    return {};
}

// Live ones first within a name, then the newest, so the first row of each name is the one to show.
Result<std::vector<CertificateRecord>> EnrolmentStore::nodes() {
    TRY_ASSIGN(auto query,
               database_.prepare(all_columns + "ORDER BY name, revoked IS NOT NULL, issued DESC, fingerprint"));
    std::vector<CertificateRecord> nodes;
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return nodes;
        }
        if (nodes.empty() || nodes.back().name != query.text(1)) {
            TRY_ASSIGN(auto record, record_of(query));
            nodes.push_back(std::move(record));
        }
    }
}

}  // namespace causeway
