// What a node remembers of the coordinator's audit log: the heads that came with `committed`.
//
// A log that was cut, or written anew, is a good chain in itself; it is found out by a head that somebody saw before.
// So every new head is kept, durably, in STATE/audit_heads. The file is bounded: the newest half is whole; of those
// before, every `stride`-th stays, from the first of all on, and `stride` doubles whenever these are too many. So what
// is long ago stays covered evenly. Heads change when somebody joins, leaves, submits or is refused, not each round.
//
//   STATE/audit_heads := {"federation": name, "seen": N, "stride": N, "heads": [64 hex digits, oldest first],
//                         "check": SHA-256 of "federation seen stride head head ..."}
// Thread: one owner at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/digest.h"

namespace causeway::node {

constexpr std::size_t most_audit_heads = 256;  // half of them the newest

class AuditHeads {
public:
    /// Of a node's state folder; none where none has come yet.
    ///
    /// errors   corrupt `state_damaged`; io
    static Result<AuditHeads> open(const std::filesystem::path& state);

    /// The same for the node itself: a damaged file is set aside as evidence, which is said, and heads are noted anew.
    /// errors: io
    static Result<AuditHeads> open_or_begin(const std::filesystem::path& state);

    /// cost: 2 flushes; none when it is the newest already. errors: io
    Status note(const std::string& federation, const Digest& head);

    [[nodiscard]] const std::string& federation() const { return federation_; }
    [[nodiscard]] const std::vector<Digest>& heads() const { return heads_; }

private:
    explicit AuditHeads(std::filesystem::path file) : file_(std::move(file)) {}
    void add(const Digest& head);
    [[nodiscard]] Status save() const;

    std::filesystem::path file_;
    std::string federation_;
    std::uint64_t seen_ = 0;    // all that ever came
    std::uint64_t stride_ = 1;  // of the older half
    std::vector<Digest> heads_;
};

}  // namespace causeway::node
