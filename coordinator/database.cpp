// The one file that knows sqlite3.h. Result codes become kinds by what a person must do: make room, stop the other
// process, restore a backup. Wrong SQL would be a bug of our own, which no test lets through: where it fails at a
// user's the schema is damaged.
#include "coordinator/database.h"

#include <cerrno>
#include <limits>
#include <utility>

#define SQLITE_ENABLE_PREUPDATE_HOOK  // Debian's library has it; the header shows it only so
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
    // A statement that a whole schema of this format takes, and this one does not: the schema is damaged.
    if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_ERROR) {
        return fail(ErrorKind::corrupt, "database_corrupt", text + "; restore the folder from a backup");
    }
    return fail(ErrorKind::io, "io", text);
}

// Called by SQLite after each commit with the length of the write-ahead log.
int note_log_pages(void* pages, sqlite3*, const char*, int count) {
    *static_cast<int*>(pages) = count;
    return SQLITE_OK;
}

/// Text and blobs are taken byte by byte as they lie there.
StoredValue value_of(sqlite3_value* value) {
    const auto bytes = [&]() -> ByteView {
        const auto* data = static_cast<const std::byte*>(sqlite3_value_blob(value));
        return data == nullptr ? ByteView() : ByteView(data, static_cast<std::size_t>(sqlite3_value_bytes(value)));
    };
    switch (sqlite3_value_type(value)) {
        case SQLITE_INTEGER:
            return std::int64_t{sqlite3_value_int64(value)};
        case SQLITE_FLOAT:
            return sqlite3_value_double(value);
        case SQLITE_TEXT:
            return std::string(as_text(bytes()));
        case SQLITE_BLOB:
            return to_bytes(bytes());
        default:
            return {};
    }
}

StoredRow changed_row(sqlite3* database, int (*read)(sqlite3*, int, sqlite3_value**)) {
    StoredRow row;
    for (int column = 0; column < sqlite3_preupdate_count(database); ++column) {
        sqlite3_value* value = nullptr;
        ASSERT(read(database, column, &value) == SQLITE_OK);
        row.push_back(value_of(value));
    }
    return row;
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

int Statement::columns() const {
    return sqlite3_column_count(handle_);
}

StoredValue Statement::value(int column) const {
    return value_of(sqlite3_column_value(handle_, column));
}

void Statement::bind_value(int column_from_1, const StoredValue& value) {
    if (std::holds_alternative<std::monostate>(value)) {
        ASSERT(sqlite3_bind_null(handle_, column_from_1) == SQLITE_OK);
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        bind_one(column_from_1, *integer);
    } else if (const auto* number = std::get_if<double>(&value)) {
        bind_one(column_from_1, *number);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
        bind_one(column_from_1, *text);
    } else {
        bind_one(column_from_1, std::get<Bytes>(value));
    }
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
    database.at_close(AtClose::leave);
    // Exclusive first: WAL then needs no shared memory file, and a second opener finds out at once.
    TRY(
        database.run_script("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                            "PRAGMA foreign_keys=ON; PRAGMA wal_autocheckpoint=0;"));
    if (options.max_pages > 0) {
        TRY(database.run_script("PRAGMA max_page_count=" + std::to_string(options.max_pages)));
    }
    sqlite3_wal_hook(handle, note_log_pages, &database.hooks_->log_pages);
    sqlite3_preupdate_hook(handle, &Database::note_change, database.hooks_.get());
    return database;
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      hooks_(std::move(other.hooks_)),
      flushes_(other.flushes_) {}

Database& Database::operator=(Database&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(hooks_, other.hooks_);
    std::swap(flushes_, other.flushes_);
    return *this;
}

Database::~Database() {
    sqlite3_close(handle_);
}

void Database::note_change(void* hooks, sqlite3* database, int operation, const char* schema, const char* table,
                           long long, long long) {
    auto* watch = static_cast<Hooks*>(hooks)->watch;
    if (watch != nullptr && std::string_view(schema) == "main") {  // not the copy that VACUUM INTO fills
        RowChange change{.table = table, .before = {}, .after = {}};
        if (operation != SQLITE_INSERT) {
            change.before = changed_row(database, sqlite3_preupdate_old);
        }
        if (operation != SQLITE_DELETE) {
            change.after = changed_row(database, sqlite3_preupdate_new);
        }
        watch->changed(std::move(change));
    }
}

void Database::set_watch(DatabaseWatch* watch) {
    hooks_->watch = watch;
}

void Database::at_close(AtClose what) {
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, what == AtClose::leave ? 1 : 0, nullptr);
}

Status Database::transaction(const char* kind, const std::function<Status()>& work) {
    TRY(run_script("BEGIN IMMEDIATE"));
    auto status = work();
    if (status && hooks_->watch != nullptr) {
        status = hooks_->watch->before_commit(*this);
    }
    if (status) {
        crash_point("store.uncommitted", kind);
        status = run_script("COMMIT");
    }
    if (!status) {
        // SQLite may have rolled back by itself (disk full); then this fails and nothing is lost by that.
        sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
        if (hooks_->watch != nullptr) {
            hooks_->watch->rolled_back();
        }
        return status;
    }
    crash_point("store.committed", kind);
    ++flushes_;
    if (hooks_->watch != nullptr) {
        hooks_->watch->committed(*this);
    }
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

Status Database::fold_log() {
    if (sqlite3_wal_checkpoint_v2(handle_, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr) != SQLITE_OK) {
        return database_failure(handle_, "fold its log");
    }
    flushes_ += 2;
    hooks_->log_pages = 0;
    if (hooks_->watch != nullptr) {
        hooks_->watch->folded(*this);
    }
    return {};
}

Result<std::string> Database::integrity() {
    TRY_ASSIGN(auto check, prepare("PRAGMA integrity_check(1)"));
    TRY(check.next());
    auto found = check.text(0);
    return found == "ok" ? std::string() : found;
}

// The transaction is durable already: a log that cannot be folded now is folded after a later one.
Status Database::fold_log_when_long() {
    int in_log = 0;
    int folded = 0;
    if (hooks_->log_pages >= longest_log_pages &&
        sqlite3_wal_checkpoint_v2(handle_, nullptr, SQLITE_CHECKPOINT_PASSIVE, &in_log, &folded) == SQLITE_OK) {
        flushes_ += 2;
        hooks_->log_pages = 0;
        if (hooks_->watch != nullptr && in_log == folded) {
            hooks_->watch->folded(*this);
        }
    }
    return {};
}

}  // namespace causeway
