// Who belongs to the federation: makes tokens, answers enrolments, revokes, lists, and reads the audit log. The work is
// done on the store thread; what was decided for good is a line of the audit log in the same transaction.
//
// Thread: called on the loop; answers come back through the callbacks, from the store thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/json.h"
#include "coordinator/daemon_limits.h"
#include "coordinator/enrolment_store.h"
#include "coordinator/revocations.h"
#include "coordinator/store_thread.h"
#include "wire/address.h"
#include "wire/identity.h"
#include "wire/message.h"

namespace causeway {

struct AdmissionOptions {
    Authority authority;
    std::filesystem::path state = {};  // the coordinator's folder, for backups
    std::vector<Address> token_addresses;
    std::function<std::int64_t()> unix_now = wall_clock_unix_s;
    std::shared_ptr<Revocations> revocations = std::make_shared<Revocations>();
    std::shared_ptr<const DaemonLimits> limits = std::make_shared<const DaemonLimits>();
};

/// The store's record of a certificate. errors: corrupt, invalid: not one of ours
Result<CertificateRecord> certificate_record(const std::string& name, Role role, const Bytes& public_key,
                                             Bytes certificate);

/// What a peer with a revoked certificate hears.
Error revoked_error();

class Admission {
public:
    using Answer = std::function<void(Result<Json>)>;
    Admission(AdmissionOptions options, StoreThread& store);

    /// {name, role, expires_seconds} -> {token, name, role, expires_unix_s}
    ///
    /// errors   invalid: name, role or expiry; refused `name_taken`
    void new_token(const Json& body, const std::string& by, Answer done);
    /// A JoinReply, or the refusal as an ErrorNotice.
    void enrol(const JoinRequest& request, std::function<void(Message)> done);
    /// {name} -> {node, state}. When `done` is called the link refuses the identity; its sessions are the caller's.
    ///
    /// errors   not_found `unknown_node`; refused `own_identity`: an operator cannot revoke itself
    void revoke(const Json& body, const std::string& by, Answer done);
    /// Adds to the rows of those that are there (operator_requests.h) everybody who was ever enrolled.
    void list_nodes(Json online, std::set<std::string> connected, Answer done);
    /// {after, limit} -> {entries: [{sequence, entry, hash}], head, length}
    void show_audit(const Json& body, Answer done);
    /// The verbs that need nothing but the store: token.*, certificate.renew, ca.*, audit.show, experiment.log. Only
    /// renewing one's own certificate is for every role; that the others come from operators is the caller's to see to.
    ///
    /// errors   unsupported `unknown_verb`; those of the verbs
    void request(std::string_view verb, const Json& body, const PeerIdentity& asker, Answer done);

    /// {} -> {tokens: [{name, role, expires_unix_s, expired}]}: those that nobody has used
    void list_tokens(Answer done);
    /// {name} -> {name, state}. errors: not_found `unknown_token`
    void withdraw_token(const Json& body, const std::string& by, Answer done);
    /// {request} -> {certificate, expires_unix_s}: the successor of the certificate that the asker is connected with.
    ///
    /// errors   those of read_renewal_body and EnrolmentStore::renew
    void renew(const Json& body, const PeerIdentity& asker, Answer done);
    /// {} -> {requests: [{name, role, request, at_unix_s}]}: what waits for an authority elsewhere
    void list_requests(Answer done);
    /// {certificate} -> {name, role, expires_unix_s}: what was signed elsewhere for a parked request.
    ///
    /// errors   of verify_certificate and EnrolmentStore::import
    void import(const Json& body, const std::string& by, Answer done);
    /// {} -> {state}: store and snapshots are set aside for the command that copies them (coordinator/backup.h).
    void stage_backup(const std::string& by, Answer done);
    /// A line for what this process did with its own certificate.
    void note_own_renewal(const CertificateFacts& facts);

    /// A session was refused for good (revoked): one line per certificate and start, so that it cannot fill the log.
    void note_refusal(const PeerIdentity& peer, const std::string& address);
    /// threads  thread-safe
    [[nodiscard]] bool is_revoked(const Digest& fingerprint) const {
        return options_.revocations->contains(fingerprint);
    }
    [[nodiscard]] const std::string& federation() const { return options_.authority.federation; }

private:
    bool note_first(const std::string& refusal);

    AdmissionOptions options_;
    StoreThread& store_;
    Digest authority_key_;
    std::set<std::string> noted_;  // store thread: refusals that have a line already
};

}  // namespace causeway
