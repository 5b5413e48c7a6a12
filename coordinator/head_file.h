// STATE/coordinator.head: what the database has come to, written beside it, so that an older database is found out.
//
// SQLite drops the rest of a write-ahead log behind a damaged frame without a word: the database is then whole, and
// older. So each transaction is also a record here, written once it is durable and without a flush of its own: this
// file may lag behind the database, and never leads. It begins with the state at the last time when the log was folded
// into the database, so its size is bounded by that state and one log's transactions; those are here with their rows,
// from which `causeway doctor --repair` makes them again.
//
//   head    := record*
//   record  := "CWHD" u32 size, payload[size], check              check := SHA-256 of size and payload
//   payload := u16 version = 1, u8 kind, u64 sequence, digest chain, digest total, u32 n, change[n],
//              u32 m, (u64 id, text name, text state, i64 last_round, digest model)[m]
//   change  := text table, row before, row after                  row: row_sums.h; no columns: there is none
//
// kind 1, a transaction: its changes; chain := SHA-256(chain before, SHA-256 of n and the changes); m = 0. kind 2, the
// state after a transaction: as changes the epoch's row and every revoked certificate, and the experiments. total: the
// sum of all rows afterwards. A record ends where the next magic stands, so one that is damaged is told apart from
// those behind it; bytes behind the last whole record are one that was cut short. Mode 0600.
// Thread: one owner at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "coordinator/database.h"

namespace causeway {

struct HeadExperiment {
    std::uint64_t experiment = 0;
    std::string name;
    std::string state;
    std::int64_t last_round = -1;  // committed; -1: none
    Digest model;                  // of that round
};

struct HeadRecord {
    enum class Kind : std::uint8_t { transaction = 1, state = 2 };
    Kind kind = Kind::transaction;
    std::uint64_t sequence = 0;
    Digest chain;
    Digest total;
    std::vector<RowChange> changes;
    std::vector<HeadExperiment> experiments{};
};

/// What could be read. Records rise in their sequence.
struct HeadContents {
    std::vector<HeadRecord> records;
    bool damaged = false;  // bytes that are no record stand before one
    bool torn = false;     // and behind the last one
    [[nodiscard]] bool empty() const { return records.empty(); }
    [[nodiscard]] const HeadRecord& last() const { return records.back(); }
};

[[nodiscard]] Bytes encode_head_record(const HeadRecord& record);
[[nodiscard]] HeadContents decode_head(ByteView file);
/// The chain after a transaction of these changes.
[[nodiscard]] Digest head_chain(const Digest& before, const std::vector<RowChange>& changes);

/// Of a state folder; no records where there is none. errors: io
Result<HeadContents> read_head(const std::filesystem::path& state);

class HeadFile {
public:
    explicit HeadFile(std::filesystem::path state) : path_(state / "coordinator.head") {}
    HeadFile(const HeadFile&) = delete;
    HeadFile& operator=(const HeadFile&) = delete;
    ~HeadFile();

    /// Begins anew with this record. cost: 2 flushes. errors: io; the earlier file is then as it was
    Status begin(const HeadRecord& record);
    /// After begin(). errors: io: nothing of the record is there
    Status append(const HeadRecord& record);
    /// Bytes since begin(), that record not counted.
    [[nodiscard]] std::uint64_t appended() const { return appended_; }

private:
    std::filesystem::path path_;
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
    std::uint64_t appended_ = 0;
};

}  // namespace causeway
