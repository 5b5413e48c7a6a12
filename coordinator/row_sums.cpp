// See row_sums.h. Tables are read as they lie, not by an index: an index may be damaged when its table is whole.
#include "coordinator/row_sums.h"

#include <cmath>
#include <cstring>

namespace causeway {
namespace {

constexpr std::uint32_t most_columns = 64;
constexpr std::size_t longest_text = std::size_t{1} << 30;  // SQLite's own bound
constexpr double whole_below = 9007199254740992.0;          // 2^53

enum class Tag : std::uint8_t { null, integer, number, text, blob };

void put_value(ByteWriter& out, const StoredValue& value) {
    const auto put_integer = [&](std::int64_t integer) {
        out.put(Tag::integer);
        out.put(integer);
    };
    if (std::holds_alternative<std::monostate>(value)) {
        out.put(Tag::null);
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        put_integer(*integer);
    } else if (const auto* number = std::get_if<double>(&value)) {
        if (std::abs(*number) < whole_below && std::trunc(*number) == *number) {
            return put_integer(static_cast<std::int64_t>(*number));
        }
        out.put(Tag::number);
        out.put(*number);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
        out.put(Tag::text);
        out.put_text(*text);
    } else {
        out.put(Tag::blob);
        out.put_text(as_text(std::get<Bytes>(value)));
    }
}

Result<StoredValue> get_value(ByteReader& in) {
    TRY_ASSIGN(const auto tag, in.get<Tag>());
    switch (tag) {
        case Tag::null:
            return StoredValue{};
        case Tag::integer: {
            TRY_ASSIGN(const auto integer, in.get<std::int64_t>());
            return StoredValue{integer};
        }
        case Tag::number: {
            TRY_ASSIGN(const auto number, in.get<double>());
            return StoredValue{number};
        }
        case Tag::text: {
            TRY_ASSIGN(auto text, in.get_text(longest_text));
            return StoredValue{std::move(text)};
        }
        case Tag::blob: {
            TRY_ASSIGN(const auto bytes, in.get_text(longest_text));
            return StoredValue{to_bytes(bytes)};
        }
    }
    return fail(ErrorKind::corrupt, "bad_record", "a value of no known kind");
}

std::array<std::uint64_t, 4> limbs_of(const Digest& digest) {
    std::array<std::uint64_t, 4> limbs;
    std::memcpy(limbs.data(), digest.bytes.data(), sizeof limbs);
    return limbs;
}

}  // namespace

void put_row(ByteWriter& out, const StoredRow& row) {
    out.put(static_cast<std::uint32_t>(row.size()));
    for (const auto& value : row) {
        put_value(out, value);
    }
}

Result<StoredRow> get_row(ByteReader& in) {
    TRY_ASSIGN(const auto columns, in.get<std::uint32_t>());
    if (columns > most_columns) {
        return fail(ErrorKind::corrupt, "bad_record", "a row of too many columns");
    }
    StoredRow row;
    for (std::uint32_t i = 0; i < columns; ++i) {
        TRY_ASSIGN(auto value, get_value(in));
        row.push_back(std::move(value));
    }
    return row;
}

void RowSum::add(const Digest& digest) {
    const auto other = limbs_of(digest);
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
        const auto partial = limbs_[i] + other[i];
        const auto sum = partial + carry;
        carry = (partial < other[i] ? 1U : 0U) + (sum < carry ? 1U : 0U);
        limbs_[i] = sum;
    }
}

void RowSum::subtract(const Digest& digest) {
    const auto other = limbs_of(digest);
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
        const auto partial = limbs_[i] - other[i];
        const auto difference = partial - borrow;
        borrow = (limbs_[i] < other[i] ? 1U : 0U) + (partial < borrow ? 1U : 0U);
        limbs_[i] = difference;
    }
}

Digest RowSum::value() const {
    Digest digest;
    std::memcpy(digest.bytes.data(), limbs_.data(), sizeof limbs_);
    return digest;
}

Digest row_digest(const std::string& table, const StoredRow& row) {
    ByteWriter out;
    out.put_text(table);
    put_row(out, row);
    return sha256(out.take());
}

Result<SummedTables> summed_tables(Database& database) {
    TRY_ASSIGN(auto names, database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN "
                                            "('sums', 'head') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"));
    SummedTables tables;
    for (;;) {
        TRY_ASSIGN(const auto found, names.next());
        if (!found) {
            return tables;
        }
        const auto table = names.text(0);
        TRY_ASSIGN(auto column, database.prepare("SELECT cid FROM pragma_table_info(?) WHERE name = ?"));
        TRY_ASSIGN(const auto has,
                   column.bind(table, std::string(table == "experiments" ? "id" : "experiment")).next());
        tables[table] = has ? static_cast<int>(column.integer(0)) : -1;
    }
}

Part part_of(const SummedTables& tables, const std::string& table, const StoredRow& row) {
    const auto known = tables.find(table);
    const auto column = known == tables.end() ? -1 : known->second;
    if (column < 0 || static_cast<std::size_t>(column) >= row.size()) {
        return {table, 0};
    }
    const auto* experiment = std::get_if<std::int64_t>(&row[static_cast<std::size_t>(column)]);
    return {table, experiment != nullptr ? *experiment : 0};
}

Result<PartSums> read_sums(Database& database, const SummedTables& tables) {
    PartSums sums;
    const auto add_rows = [&](const std::string& table, const std::string& query) -> Status {
        TRY_ASSIGN(auto rows, database.prepare(query));
        for (;;) {
            TRY_ASSIGN(const auto found, rows.next());
            if (!found) {
                return {};
            }
            StoredRow row;
            for (int i = 0; i < rows.columns(); ++i) {
                row.push_back(rows.value(i));
            }
            auto& part = sums[part_of(tables, table, row)];
            ++part.rows;
            part.sum.add(row_digest(table, row));
        }
    };
    for (const auto& [table, column] : tables) {
        TRY(add_rows(table, "SELECT * FROM \"" + table + "\" NOT INDEXED"));
    }
    // Where each table begins is another page in a copy, and shows in what is found there.
    TRY(add_rows("schema", "SELECT type, name, tbl_name, sql FROM sqlite_schema"));
    TRY(add_rows("schema", "PRAGMA user_version"));
    return sums;
}

Digest total_of(const PartSums& sums) {
    RowSum total;
    for (const auto& [part, sum] : sums) {
        total.add(sum.sum.value());
    }
    return total.value();
}

}  // namespace causeway
