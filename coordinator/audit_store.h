// The audit log: a chain of hashes, so that no line can be changed or taken out without breaking those after it.
//
// hash(n) = SHA-256(hash(n - 1) || entry(n)), hash(0) = 32 zeros. The head goes out with every `committed`, so a log
// that was cut short contradicts what the members have seen.
// Thread: the store thread. errors: of coordinator/database.h besides those named.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.h"
#include "coordinator/database.h"

namespace causeway {

struct AuditEntry {
    std::uint64_t sequence = 0;  // from 1
    std::string entry;           // JSON, one line
    Digest hash;
};

/// {"at": unix seconds, "event": ..., then the detail's fields}
Json audit_line(std::int64_t now_unix_s, std::string_view event, const Json& detail);

/// The chain's rule, for whoever checks it elsewhere too (cli/audit_commands.cpp).
Digest audit_hash(const Digest& before, std::string_view entry);

class AuditStore {
public:
    /// database: the store's; it must outlive this object.
    explicit AuditStore(Database& database) : database_(database) {}

    /// Adds a line and gives the new head. cost: 1 flush
    Result<Digest> append(const Json& entry);
    /// The same inside the transaction of what the line speaks of: both are durable, or neither.
    Result<Digest> add(const Json& entry);
    /// The last hash; zeros when nothing was written.
    Result<Digest> head();
    /// At most `limit` lines after `sequence`.
    Result<std::vector<AuditEntry>> entries_after(std::uint64_t sequence, std::uint32_t limit);
    /// Walks the whole chain and gives its length.
    ///
    /// errors   corrupt `audit_broken`: the first line that does not follow from the one before
    Result<std::uint64_t> verify();

private:
    Database& database_;
};

}  // namespace causeway
