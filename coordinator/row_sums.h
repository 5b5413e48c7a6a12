// What the rows of the store come to: a sum per table and experiment that any changed, added or lost row changes.
//
// A row's digest is SHA-256 over its table's name and its values; a sum adds digests modulo 2^256. So rows may be added
// and taken away in any order, each for the cost of its own digest, and a look at all rows tells whether they are those
// that were written. Against damage, not against an owner who writes both rows and sums anew.
//
//   row := u32 columns, value*      value := u8 0 | u8 1, i64 | u8 2, f64 | u8 3, text | u8 4, u32 size, bytes[size]
//
// What the tables are (SQLite's schema, the format's number) is a part of its own, `schema`.
//
// Whole numbers below 2^53 are written as i64 whatever they are stored as: SQLite keeps such a REAL as an integer.
// Pure, but for read_sums.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "coordinator/database.h"

namespace causeway {

void put_row(ByteWriter& out, const StoredRow& row);
/// errors  corrupt
Result<StoredRow> get_row(ByteReader& in);

class RowSum {
public:
    void add(const Digest& digest);
    void subtract(const Digest& digest);
    [[nodiscard]] Digest value() const;
    bool operator==(const RowSum&) const = default;

private:
    std::array<std::uint64_t, 4> limbs_{};  // the lowest first
};

struct PartSum {
    std::int64_t rows = 0;
    RowSum sum;
    bool operator==(const PartSum&) const = default;
};

/// A table and an experiment in it; 0: rows of none.
using Part = std::pair<std::string, std::int64_t>;
using PartSums = std::map<Part, PartSum>;

[[nodiscard]] Digest row_digest(const std::string& table, const StoredRow& row);

/// Which tables are summed, and in which column each has its experiment; -1: in none.
using SummedTables = std::map<std::string, int>;
Result<SummedTables> summed_tables(Database& database);
[[nodiscard]] Part part_of(const SummedTables& tables, const std::string& table, const StoredRow& row);

/// Of all rows as they are. cost: reads the whole database
Result<PartSums> read_sums(Database& database, const SummedTables& tables);
[[nodiscard]] Digest total_of(const PartSums& sums);

}  // namespace causeway
