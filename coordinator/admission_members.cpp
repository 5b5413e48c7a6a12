// Members of the federation as people see them: revocation, the list, the audit log. Part of Admission (admission.h).
#include <algorithm>
#include <map>

#include "common/log.h"
#include "coordinator/admission.h"
#include "coordinator/audit_store.h"
#include "coordinator/backup.h"

namespace causeway {
namespace {

constexpr std::int64_t most_lines = 100;  // of 1 KiB or so each: a reply stays below its 256 KiB

/// The row of a node that the machines know, or one for a node that was never seen since it enrolled.
Json row_of(const CertificateRecord& record, const Json* online, bool connected) {
    auto row = online != nullptr ? *online
                                 : Json::object()
                                       .set("node", record.name)
                                       .set("role", record.role)
                                       .set("state", connected ? "online" : "offline")
                                       .set("software", Json())
                                       .set("compute", Json())
                                       .set("addresses", Json::array())
                                       .set("datasets", Json::array())
                                       .set("experiment", Json());
    if (record.revoked_unix_s) {
        row.set("state", "revoked");
    }
    return row.set("role", record.role)
        .set("expires_unix_s", record.expires_unix_s)
        .set("revoked_unix_s", record.revoked_unix_s ? Json(*record.revoked_unix_s) : Json());
}

Result<Json> all_nodes(Store& store, const Json& online, const std::set<std::string>& connected) {
    std::map<std::string, Json> rows;
    for (const auto& row : online["nodes"].items()) {
        rows[row["node"].text()] = row;
    }
    TRY_ASSIGN(const auto records, EnrolmentStore(store.database()).nodes());
    for (const auto& record : records) {
        const auto known = rows.find(record.name);
        auto row = row_of(record, known == rows.end() ? nullptr : &known->second, connected.contains(record.name));
        rows[record.name] = std::move(row);
    }
    auto all = Json::array();
    for (auto& [name, row] : rows) {
        all.push(std::move(row));
    }
    return Json::object().set("nodes", std::move(all));
}

/// An entry goes out as the text that was hashed: who checks the chain must not depend on how JSON is spelled.
Result<Json> audit_page(Store& store, const Json& body) {
    AuditStore audit(store.database());
    const auto after = static_cast<std::uint64_t>(std::max<std::int64_t>(body["after"].integer(), 0));
    const auto limit = std::clamp<std::int64_t>(body["limit"].integer(most_lines), 1, most_lines);
    TRY_ASSIGN(const auto entries, audit.entries_after(after, static_cast<std::uint32_t>(limit)));
    auto lines = Json::array();
    for (const auto& entry : entries) {
        lines.push(
            Json::object().set("sequence", entry.sequence).set("entry", entry.entry).set("hash", entry.hash.hex()));
    }
    TRY_ASSIGN(const auto head, audit.head());
    return Json::object().set("entries", std::move(lines)).set("head", head.hex());
}

Result<Json> revoke_now(Store& store, Revocations& revocations, const std::string& name, std::int64_t now_s,
                        const std::string& by) {
    EnrolmentStore enrolment(store.database());
    TRY(enrolment.revoke(name, now_s, by));
    TRY_ASSIGN(auto revoked, enrolment.revoked());
    revocations.publish(std::move(revoked));
    return Json::object().set("node", name).set("state", "revoked");
}

}  // namespace

// First durable, then refused by the link, then told: a session that opens meanwhile is judged by the loop again.
void Admission::revoke(const Json& body, const std::string& by, Answer done) {
    const auto name = body["name"].text();
    if (name.empty()) {
        return done(fail(ErrorKind::invalid, "missing_argument", "node.revoke needs the node's name"));
    }
    if (name == by) {
        return done(fail(ErrorKind::refused, "own_identity",
                         "an operator cannot revoke itself, so that the federation keeps one; another operator can"));
    }
    store_.run([this, name, by, now_s = options_.unix_now(), done = std::move(done)](Store& store) {
        done(revoke_now(store, *options_.revocations, name, now_s, by));
    });
}

void Admission::list_nodes(Json online, std::set<std::string> connected, Answer done) {
    store_.run([online = std::move(online), connected = std::move(connected), done = std::move(done)](Store& store) {
        done(all_nodes(store, online, connected));
    });
}

void Admission::show_audit(const Json& body, Answer done) {
    store_.run([body, done = std::move(done)](Store& store) { done(audit_page(store, body)); });
}

void Admission::stage_backup(const std::string& by, Answer done) {
    store_.run([state = options_.state, by, now_s = options_.unix_now(), done = std::move(done)](Store& store) {
        const auto staged = causeway::stage_backup(store.database(), state, by, now_s);
        done(staged ? Result<Json>(Json::object().set("state", "staged")) : Result<Json>(fail(staged.error())));
    });
}

void Admission::note_refusal(const PeerIdentity& peer, const std::string& address) {
    store_.run([this, peer, address, now_s = options_.unix_now()](Store& store) {
        if (!note_first(peer.fingerprint.hex())) {
            return;
        }
        const auto detail = Json::object()
                                .set("node", peer.identity.node)
                                .set("role", to_string(peer.identity.role))
                                .set("fingerprint", peer.fingerprint.hex())
                                .set("address", address)
                                .set("code", "revoked");
        const auto line = audit_line(now_s, "session.refused", detail);
        if (const auto written = AuditStore(store.database()).append(line); !written) {
            log_warn("coordinator", "a refused session has no line in the audit log: " + written.error().message);
        }
    });
}

}  // namespace causeway
