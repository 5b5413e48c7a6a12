// Who may join and who has: join tokens and issued certificates.
//
// A token is kept as the SHA-256 of its secret. Using it and issuing the certificate are one transaction keyed by the
// requester's public key: a client that lost the answer asks again with the same key and gets the same certificate;
// with any other key the token is used up. Names are unique: a name belongs to a live token or a live certificate.
// Thread: the store thread. errors: of coordinator/database.h besides those named.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/json.h"
#include "coordinator/database.h"

namespace causeway {

struct TokenRecord {
    Digest secret_sha256;
    std::string name;
    std::string role;  // client | host | aggregator | operator
    std::int64_t expires_unix_s = 0;
    std::string made_by{};  // the operator, for the audit log; not stored with the token
};

struct CertificateRecord {
    Digest fingerprint;  // SHA-256 of `certificate`
    std::string name;
    std::string role;
    Bytes public_key;   // DER SubjectPublicKeyInfo
    Bytes certificate;  // DER
    std::int64_t issued_unix_s = 0;
    std::int64_t expires_unix_s = 0;
    std::optional<std::int64_t> revoked_unix_s;
};

struct EnrolmentRequest {
    std::string name;
    Digest secret_sha256;
    Bytes public_key;
    std::int64_t now_unix_s = 0;
    Bytes request{};  // PKCS#10: parked until it is signed elsewhere, instead of being signed here
};

/// An identity that asks for the successor of the certificate it is connected with.
struct RenewalRequest {
    std::string name;
    std::string role;
    Digest present;    // the session's certificate
    Bytes public_key;  // the next key
    std::int64_t now_unix_s = 0;
    Bytes request{};  // as above
};

/// A request that waits for an authority elsewhere.
struct ParkedRequest {
    std::string name;
    std::string role;
    Bytes public_key;
    Bytes request;
    std::int64_t at_unix_s = 0;
};

/// A token that nobody has used.
struct TokenRow {
    std::string name;
    std::string role;
    std::int64_t expires_unix_s = 0;
};

/// The answer while a request is parked: its owner asks again with the same key.
Error awaiting_signature(const std::string& name);
bool is_awaiting(const Error& error);

/// Signs for a token's name and role. Called inside the transaction; its error undoes everything.
using IssueCertificate = std::function<Result<CertificateRecord>(const TokenRecord& token, const Bytes& public_key)>;

/// What it decides for good (a token, an enrolment, a revocation) is a line of the audit log in the same transaction.
class EnrolmentStore {
public:
    /// database: the store's; it must outlive this object.
    explicit EnrolmentStore(Database& database) : database_(database) {}

    /// errors   refused `name_taken`: a node has that name, or an unused token that has not expired
    Status add_token(const TokenRecord& token, std::int64_t now_unix_s);

    /// The certificate of the node that holds the token. cost: 1 flush
    ///
    /// errors   refused `token_unknown`, `token_name`: made for another name, `token_expired`, `token_used`: by another
    ///          key, `revoked`: its node was revoked since; and issue's own
    Result<CertificateRecord> enrol(const EnrolmentRequest& request, const IssueCertificate& issue);

    /// The token's name is free again. errors: not_found `unknown_token`: no unused token of that name
    Status withdraw_token(const std::string& name, std::int64_t now_unix_s, const std::string& by);
    /// Unused tokens by name, expired ones too.
    Result<std::vector<TokenRow>> tokens();

    /// The successor of a certificate; the same key gets the same one again. cost: 1 flush, none when repeated
    ///
    /// errors   refused `revoked`, `renewal_not_due`, `awaiting_signature`; overloaded `too_many_certificates`
    Result<CertificateRecord> renew(const RenewalRequest& request, const IssueCertificate& issue);

    // ---- an authority elsewhere
    Result<std::vector<ParkedRequest>> parked();
    /// A certificate that was signed elsewhere, for a parked request: its owner gets it when it asks again.
    ///
    /// errors   not_found `unknown_request`: nothing of that key waits; invalid `wrong_certificate`: for another name
    ///          or role
    Status import(const CertificateRecord& certificate, std::int64_t now_unix_s, const std::string& by);

    /// A certificate issued without a token, the first operator's: at every start, where it may be known already. A new
    /// certificate of a key that was revoked is revoked too: renewal does not undo a revocation.
    Status adopt(const CertificateRecord& certificate);
    /// errors   not_found `unknown_certificate`
    Result<CertificateRecord> find_certificate(const Digest& fingerprint);
    /// Every certificate of that name is revoked; its connections are the caller's to close.
    ///
    /// errors   not_found `unknown_node`: no live certificate has that name
    Status revoke(const std::string& name, std::int64_t now_unix_s, const std::string& by = {});
    /// Of every certificate that is revoked, expired ones included: an expired one is refused in any case.
    Result<std::set<Digest>> revoked();
    /// The latest certificate of each name, by name.
    Result<std::vector<CertificateRecord>> nodes();

private:
    Result<std::optional<CertificateRecord>> certificate_of_key(const std::string& name, const Bytes& public_key);
    Result<CertificateRecord> enrol_now(const EnrolmentRequest& request, const IssueCertificate& issue);
    Result<CertificateRecord> repeat_answer(const EnrolmentRequest& request);
    Result<CertificateRecord> renew_now(const RenewalRequest& request, const IssueCertificate& issue);
    Status check_renewal(const RenewalRequest& request);
    Status park(const ParkedRequest& request);
    Result<bool> is_parked(const Bytes& public_key);
    Result<bool> certificate_of_name(const std::string& name);
    Status insert(const CertificateRecord& certificate);
    Status audit(std::int64_t now_unix_s, const char* event, Json detail);
    Result<bool> name_is_taken(const std::string& name, std::int64_t now_unix_s);

    Database& database_;
};

}  // namespace causeway
