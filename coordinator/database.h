// SQLite as the store uses it: one connection, held exclusively for life, WAL with synchronous=FULL, typed errors.
//
// sqlite3.h stays in database.cpp. Every write happens in a transaction that is durable when it returns. Locks of a
// process that was killed vanish with it, so a restart finds the database free.
// Thread: the store thread owns a database and its statements.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/bytes.h"
#include "common/digest.h"

struct sqlite3;
struct sqlite3_stmt;

namespace causeway {

/// A value of a row as it is stored: NULL, INTEGER, REAL, TEXT or BLOB.
using StoredValue = std::variant<std::monostate, std::int64_t, double, std::string, Bytes>;
using StoredRow = std::vector<StoredValue>;

/// One row that a transaction has added, changed or removed, in the order of its table's columns.
struct RowChange {
    std::string table;
    StoredRow before;  // empty: the row is new
    StoredRow after;   // empty: the row is gone
};

/// A prepared statement. Parameters are bound in order, from the first; columns are counted from 0.
class Statement {
public:
    Statement(Statement&& other) noexcept;
    Statement& operator=(Statement&& other) noexcept;
    ~Statement();

    template <class... Values>
    Statement& bind(const Values&... values) {
        int at = 0;
        (bind_one(++at, values), ...);
        return *this;
    }
    /// Moves to the next row. False after the last one. errors: as of Database
    Result<bool> next();
    /// For statements without rows.
    Status run();

    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] double number(int column) const;  // NaN for NULL: SQLite stores NaN as NULL
    [[nodiscard]] std::string text(int column) const;
    [[nodiscard]] Bytes blob(int column) const;
    [[nodiscard]] bool is_null(int column) const;
    [[nodiscard]] int columns() const;
    [[nodiscard]] StoredValue value(int column) const;
    void bind_value(int column_from_1, const StoredValue& value);
    /// errors  corrupt: the column is no 32-byte blob
    [[nodiscard]] Result<Digest> digest(int column) const;

private:
    friend class Database;
    Statement(sqlite3* database, sqlite3_stmt* handle) : database_(database), handle_(handle) {}
    void bind_one(int at, std::int64_t value);
    void bind_one(int at, std::uint64_t value) { bind_one(at, static_cast<std::int64_t>(value)); }
    void bind_one(int at, std::uint32_t value) { bind_one(at, static_cast<std::int64_t>(value)); }
    void bind_one(int at, double value);
    void bind_one(int at, const std::string& value);
    void bind_one(int at, const Bytes& value);
    void bind_one(int at, const Digest& value);

    sqlite3* database_;
    sqlite3_stmt* handle_;
};

struct DatabaseOptions {
    std::uint32_t max_pages = 0;  // of 4 KiB; 0: no limit of our own. Reaching it is `disk_full`.
};

class Database;

/// Hears of every change of a row, and may write beside it in the same transaction (coordinator/store_journal.h).
class DatabaseWatch {
public:
    virtual ~DatabaseWatch() = default;
    virtual void changed(RowChange change) = 0;
    /// Inside the transaction, behind its work: an error rolls all of it back.
    virtual Status before_commit(Database& database) = 0;
    /// It is durable.
    virtual void committed(Database& database) = 0;
    virtual void rolled_back() = 0;
    /// The write-ahead log is folded into the database file, all of it, durably.
    virtual void folded(Database& database) = 0;
};

/// errors of all its functions
///   refused `state_in_use`: another live process holds the database
///   io      `disk_full`, `io`
///   corrupt `database_corrupt`: the file is damaged or no database
class Database {
public:
    static Result<Database> open(const std::filesystem::path& path, DatabaseOptions options);
    Database(Database&& other) noexcept;
    Database& operator=(Database&& other) noexcept;
    ~Database();

    /// Runs `work` between BEGIN IMMEDIATE and COMMIT; any error rolls all of it back. `kind` names its crash points.
    ///
    /// cost  1 flush; 2 more when the log has grown to 1,000 pages and is folded into the database
    Status transaction(const char* kind, const std::function<Status()>& work);
    /// Statements without parameters and rows, separated by semicolons.
    Status run_script(const std::string& sql);
    Result<Statement> prepare(const std::string& sql);
    /// A whole, consistent copy. errors: io
    Status copy_to(const std::filesystem::path& path);

    /// From now on `watch` hears of changes; it outlives the database. nullptr: nobody does.
    void set_watch(DatabaseWatch* watch);
    /// What a close does with the write-ahead log: fold it and remove it, or leave both files as they are. So it is at
    /// first: a damaged log is evidence, of which folding would keep the part before the damage.
    enum class AtClose { fold, leave };
    void at_close(AtClose what);
    /// Folds the whole write-ahead log into the database file, durably. cost: 2 flushes
    Status fold_log();
    /// What SQLite's own check finds first; empty: nothing. It knows pages and indexes, not what rows should say.
    Result<std::string> integrity();

    [[nodiscard]] std::uint64_t flushes() const { return flushes_; }

private:
    struct Hooks {
        int log_pages = 0;
        DatabaseWatch* watch = nullptr;
    };
    static void note_change(void* hooks, sqlite3* database, int operation, const char* schema, const char* table,
                            long long before, long long after);

    explicit Database(sqlite3* handle) : handle_(handle) {}
    Status fold_log_when_long();

    sqlite3* handle_ = nullptr;
    std::unique_ptr<Hooks> hooks_ = std::make_unique<Hooks>();  // its address is SQLite's to call with
    std::uint64_t flushes_ = 0;
};

}  // namespace causeway
