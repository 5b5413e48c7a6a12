// Append reads the head and writes the next line in one transaction, so two lines never follow the same one. Thread:
// the store thread.
#include "coordinator/audit_store.h"

namespace causeway {
namespace {

constexpr std::uint32_t lines_per_read = 1000;

}  // namespace

Digest audit_hash(const Digest& before, std::string_view entry) {
    Hasher hasher;
    hasher.update(before.bytes);
    hasher.update(entry);
    return hasher.finish();
}

Json audit_line(std::int64_t now_unix_s, std::string_view event, const Json& detail) {
    auto line = Json::object().set("at", now_unix_s).set("event", event);
    for (const auto& [key, value] : detail.fields()) {
        line.set(key, value);
    }
    return line;
}

Result<Digest> AuditStore::append(const Json& entry) {
    Digest next;
    TRY(database_.transaction("audit", [&]() -> Status {
        TRY_ASSIGN(next, add(entry));
        return {};
    }));
    return next;
}

Result<Digest> AuditStore::add(const Json& entry) {
    const auto text = entry.dump();
    TRY_ASSIGN(const auto before, head());
    const auto next = audit_hash(before, text);
    TRY_ASSIGN(auto write, database_.prepare("INSERT INTO audit (entry, hash) VALUES (?, ?)"));
    TRY(write.bind(text, next).run());
    return next;
}

Result<Digest> AuditStore::head() {
    TRY_ASSIGN(auto query, database_.prepare("SELECT hash FROM audit ORDER BY sequence DESC LIMIT 1"));
    TRY_ASSIGN(const auto exists, query.next());
    return exists ? query.digest(0) : Result<Digest>(Digest{});
}

Result<std::vector<AuditEntry>> AuditStore::entries_after(std::uint64_t sequence, std::uint32_t limit) {
    TRY_ASSIGN(auto query, database_.prepare(
                               "SELECT sequence, entry, hash FROM audit WHERE sequence > ? ORDER BY sequence LIMIT ?"));
    query.bind(sequence, limit);
    std::vector<AuditEntry> entries;
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return entries;
        }
        TRY_ASSIGN(const auto hash, query.digest(2));
        entries.push_back({static_cast<std::uint64_t>(query.integer(0)), query.text(1), hash});
    }
}

Result<std::uint64_t> AuditStore::verify() {
    Digest before;
    std::uint64_t sequence = 0;
    for (;;) {
        TRY_ASSIGN(const auto entries, entries_after(sequence, lines_per_read));
        if (entries.empty()) {
            return sequence;
        }
        for (const auto& entry : entries) {
            before = audit_hash(before, entry.entry);
            if (entry.sequence != ++sequence || entry.hash != before) {
                return fail(ErrorKind::corrupt, "audit_broken",
                            "line " + std::to_string(sequence) +
                                " of the audit log does not follow from the one before: it was changed or cut");
            }
        }
    }
}

}  // namespace causeway
