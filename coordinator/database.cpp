// The one file that knows sqlite3.h. Result codes become kinds by what a person must do: make room, stop the other
// process, restore a backup. Wrong SQL and wrong positions are our own bugs; they show up as `io` with the text.
#include "coordinator/database.h"

#include <cerrno>
#include <limits>
#include <utility>

#include <sqlite3.h>

#include "common/crash_point.h"
#include "common/file.h"

namespace causeway {
namespace {

// SQLite's own default for a checkpoint; ours is explicit, so that its flushes are counted.
constexpr int longest_log_pages = 1000;

tl::unexpected<Error> database_failure(sqlite3* handle, std::string_view doing) {
    const int code = sqlite3_extended_errcode(handle);
    const int primary = code & 0xff;
    const int reason = sqlite3_system_errno(handle);
    const std::string text = "the database: " + std::string(doing) + ": " + sqlite3_errmsg(handle);
    if (primary == SQLITE_FULL || (primary == SQLITE_IOERR && (reason == ENOSPC || reason == EDQUOT))) {
        return fail(ErrorKind::io, "disk_full", text + "; free some room, the work goes on by itself");
    }
    if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) {
        return fail(ErrorKind::refused, "state_in_use",
                    text + "; another live process uses this state folder: stop it or name another folder");
    }
    if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) {
        return fail(ErrorKind::corrupt, "database_corrupt", text + "; restore the folder from a backup");
    }
    return fail(ErrorKind::io, "io", text);
}

// Called by SQLite after each commit with the length of the write-ahead log.
int note_log_pages(void* pages, sqlite3*, const char*, int count) {
    *static_cast<int*>(pages) = count;
    return SQLITE_OK;
}

}  // namespace

// ---------------------------------------------------------------- statements

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), handle_(std::exchange(other.handle_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
    std::swap(database_, other.database_);
    std::swap(handle_, other.handle_);
    return *this;
}

Statement::~Statement() {
    sqlite3_finalize(handle_);
}

Result<bool> Statement::next() {
    const int code = sqlite3_step(handle_);
    if (code == SQLITE_ROW) {
        return true;
    }
    if (code == SQLITE_DONE) {
        sqlite3_reset(handle_);
        return false;
    }
    auto failure = database_failure(database_, "step");
    sqlite3_reset(handle_);
    return failure;
}

Status Statement::run() {
    TRY(next());
    return {};
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(handle_, column);
}

double Statement::number(int column) const {
    return is_null(column) ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(handle_, column);
}

std::string Statement::text(int column) const {
    return std::string(as_text(blob(column)));
}

Bytes Statement::blob(int column) const {
    const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(handle_, column));
    return data == nullptr ? Bytes{} : Bytes(data, data + sqlite3_column_bytes(handle_, column));
}

bool Statement::is_null(int column) const {
    return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

Result<Digest> Statement::digest(int column) const {
    const auto raw = blob(column);
    Digest digest;
    if (raw.size() != digest.bytes.size()) {
        return fail(ErrorKind::corrupt, "database_corrupt", "the database: a digest is not 32 bytes long");
    }
    std::memcpy(digest.bytes.data(), raw.data(), raw.size());
    return digest;
}

// Binding fails only for a wrong position or for want of memory: bugs, not failures.
void Statement::bind_one(int at, std::int64_t value) {
    ASSERT(sqlite3_bind_int64(handle_, at, value) == SQLITE_OK);
}
void Statement::bind_one(int at, double value) {
    ASSERT(sqlite3_bind_double(handle_, at, value) == SQLITE_OK);
}
void Statement::bind_one(int at, const std::string& value) {
    ASSERT(sqlite3_bind_text64(handle_, at, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK);
}
void Statement::bind_one(int at, const Bytes& value) {
    const void* data = value.empty() ? "" : static_cast<const void*>(value.data());
    ASSERT(sqlite3_bind_blob64(handle_, at, data, value.size(), SQLITE_TRANSIENT) == SQLITE_OK);
}
void Statement::bind_one(int at, const Digest& value) {
    bind_one(at, to_bytes(value.bytes));
}

// ---------------------------------------------------------------- the database

Result<Database> Database::open(const std::filesystem::path& path, DatabaseOptions options) {
    sqlite3* handle = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &handle,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    Database database(handle);
    if (code != SQLITE_OK) {
        return database_failure(handle, "open " + path.string());
    }
    sqlite3_extended_result_codes(handle, 1);
    // Exclusive first: WAL then needs no shared memory file, and a second opener finds out at once.
    TRY(
        database.run_script("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                            "PRAGMA foreign_keys=ON; PRAGMA wal_autocheckpoint=0;"));
    if (options.max_pages > 0) {
        TRY(database.run_script("PRAGMA max_page_count=" + std::to_string(options.max_pages)));
    }
    sqlite3_wal_hook(handle, note_log_pages, database.log_pages_.get());
    return database;
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      log_pages_(std::move(other.log_pages_)),
      flushes_(other.flushes_) {}

Database& Database::operator=(Database&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(log_pages_, other.log_pages_);
    std::swap(flushes_, other.flushes_);
    return *this;
}

Database::~Database() {
    sqlite3_close(handle_);
}

Status Database::transaction(const char* kind, const std::function<Status()>& work) {
    TRY(run_script("BEGIN IMMEDIATE"));
    auto status = work();
    if (status) {
        crash_point("store.uncommitted", kind);
        status = run_script("COMMIT");
    }
    if (!status) {
        // SQLite may have rolled back by itself (disk full); then this fails and nothing is lost by that.
        sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
        return status;
    }
    crash_point("store.committed", kind);
    ++flushes_;
    return fold_log_when_long();
}

Status Database::run_script(const std::string& sql) {
    if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        return database_failure(handle_, sql.substr(0, 60));
    }
    return {};
}

Result<Statement> Database::prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
        return database_failure(handle_, sql.substr(0, 60));
    }
    return Statement(handle_, statement);
}

Status Database::copy_to(const std::filesystem::path& path) {
    const std::filesystem::path beside = path.string() + ".tmp";
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);  // of a copy that was cut short
    TRY_ASSIGN(auto copy, prepare("VACUUM INTO ?"));
    TRY(copy.bind(beside.string()).run());
    return rename_durably(beside, path);
}

// The transaction is durable already: a log that cannot be folded now is folded after a later one.
Status Database::fold_log_when_long() {
    if (*log_pages_ >= longest_log_pages &&
        sqlite3_wal_checkpoint_v2(handle_, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr) == SQLITE_OK) {
        flushes_ += 2;
        *log_pages_ = 0;
    }
    return {};
}

}  // namespace causeway
