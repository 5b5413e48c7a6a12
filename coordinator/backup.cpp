// Files are copied one by one: each of them only ever changes by a rename, and those of an identity fit each other at
// any moment but that of a renewal, so the copy's identity is read before it counts. Thread: as in backup.h.
#include "coordinator/backup.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "coordinator/audit_store.h"
#include "coordinator/schema.h"
#include "coordinator/store_check.h"
#include "wire/identity.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

/// Made anew by every process: a lock, updates on their way, copies; the store and its snapshots come from the stage.
/// Segments change from turn to turn: groups of a copy's open round begin anew. The head is that of the folder, and a
/// copy has its own history.
constexpr std::string_view left_out[] = {"lock",     "spool",   "backup", "snapshots",
                                         "segments", "damaged", "coordinator.head"};

tl::unexpected<Error> failed(const fs::path& path, const std::error_code& error, std::string_view doing) {
    const bool full = error == std::errc::no_space_on_device;
    return fail(error == std::errc::no_such_file_or_directory ? ErrorKind::not_found : ErrorKind::io,
                full                                            ? "disk_full"
                : error == std::errc::no_such_file_or_directory ? "no_such_file"
                                                                : "io",
                fmt::format("{}: cannot {}: {}{}", path.string(), doing, error.message(),
                            full ? "; nothing is left of the copy: free some room there, or name another place" : ""));
}

/// A snapshot never changes, so a second name for it is a copy of it; where names cannot be shared its bytes are.
Status link_or_copy(const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::create_hard_link(from, to, error);
    if (error && error != std::errc::no_such_file_or_directory && error != std::errc::no_space_on_device) {
        fs::copy_file(from, to, error);
    }
    return error ? failed(error == std::errc::no_such_file_or_directory ? from : to, error, "copy") : Status();
}

Status flush(const fs::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool done = descriptor >= 0 && ::fsync(descriptor) == 0;
    const std::error_code error(errno, std::generic_category());
    if (descriptor >= 0) {
        ::close(descriptor);
    }
    return done ? Status() : failed(path, error, "flush");
}

/// Every committed model that is still there; that of an experiment's last commit must be.
Status link_snapshots(Database& database, const fs::path& from, const fs::path& to) {
    TRY_ASSIGN(auto query,
               database.prepare("SELECT model, MAX(round = (SELECT MAX(round) FROM commits WHERE "
                                "experiment = c.experiment)), experiment FROM commits AS c GROUP BY model"));
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return {};
        }
        TRY_ASSIGN(const auto model, query.digest(0));
        const auto name = model.hex() + ".safetensors";
        const auto linked = link_or_copy(from / name, to / name);
        if (!linked && linked.error().kind != ErrorKind::not_found) {
            return linked;
        }
        if (!linked && query.integer(1) != 0) {
            return fail(ErrorKind::corrupt, "snapshot_lost",
                        fmt::format("{}: the last model of experiment {} is missing, so a copy would be of no use: "
                                    "restore that file from an earlier backup",
                                    (from / name).string(), query.integer(2)));
        }
    }
}

/// Keeps sums, and where `state` is named the head, in step from here on; nothing in a format before there were any.
Result<std::unique_ptr<StoreJournal>> follow(Database& database, const fs::path& state) {
    TRY_ASSIGN(const auto head, stored_head(database));
    return head ? StoreJournal::attach(database, state) : Result<std::unique_ptr<StoreJournal>>(nullptr);
}

/// The mark that raise_epoch in store.cpp looks for, on a copy that is whole. The copy is one file: its log is folded.
Status mark_as_copy(const fs::path& database_file, const fs::path& state, std::int64_t now_unix_s) {
    TRY_ASSIGN(auto copy, Database::open(database_file, {}));
    const HeadContents none;
    TRY_ASSIGN(const auto found, look_at_store(copy, none));
    TRY(require_whole(copy, state, found));
    TRY_ASSIGN(const auto journal, follow(copy, {}));
    copy.at_close(Database::AtClose::fold);
    return copy.transaction("backup", [&]() -> Status {
        TRY_ASSIGN(auto write, copy.prepare("INSERT OR REPLACE INTO meta VALUES ('copied', ?)"));
        return write.bind(now_unix_s).run();
    });
}

Result<std::int64_t> stored_format(Database& database) {
    TRY_ASSIGN(auto query, database.prepare("PRAGMA user_version"));
    TRY(query.next());
    return query.integer(0);
}

/// Regular files of a folder, with their modes; folders within it as well.
Status copy_files(const fs::path& from, const fs::path& to) {
    std::error_code error;
    for (auto entry = fs::directory_iterator(from, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        const auto& path = entry->path();
        const auto name = path.filename();
        std::error_code ignored;
        if (std::ranges::find(left_out, name.string()) != std::end(left_out) || path.extension() == ".tmp" ||
            name.string().starts_with("coordinator.db")) {
            continue;
        }
        if (fs::is_directory(fs::symlink_status(path, ignored))) {
            TRY(make_private_folder(to / name));
            TRY(copy_files(path, to / name));
        } else if (fs::is_regular_file(path, ignored) && !fs::copy_file(path, to / name, error)) {
            return failed(to / name, error, "copy");
        }
    }
    return error ? failed(from, error, "read") : Status();
}

/// Flushes all of it, files before the folders that name them, and gives the bytes.
Result<std::uint64_t> flush_tree(const fs::path& folder) {
    std::uint64_t bytes = 0;
    std::error_code error;
    for (auto entry = fs::recursive_directory_iterator(folder, error);
         !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        TRY(flush(entry->path()));
        bytes += entry->is_regular_file(error) ? entry->file_size(error) : 0;
    }
    if (error) {
        return failed(folder, error, "read");
    }
    TRY(flush(folder));
    return bytes;
}

}  // namespace

Status stage_backup(Database& database, const fs::path& state, const std::string& by, std::int64_t now_unix_s) {
    const auto next = state / "backup" / "next";
    const auto staged = state / "backup" / "staged";
    std::error_code error;
    fs::remove_all(next, error);
    TRY(make_private_folder(state / "backup"));
    TRY(make_private_folder(next));
    TRY(make_private_folder(next / "snapshots"));
    TRY(AuditStore(database).append(audit_line(now_unix_s, "backup.made", Json::object().set("by", by))));
    TRY(database.copy_to(next / "coordinator.db"));
    TRY(mark_as_copy(next / "coordinator.db", state, now_unix_s));
    TRY(link_snapshots(database, state / "snapshots", next / "snapshots"));
    fs::remove_all(staged, error);
    return rename_durably(next, staged);
}

Status stage_idle_backup(const fs::path& state, std::int64_t now_unix_s) {
    const auto path = state / "coordinator.db";
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
        return fail(ErrorKind::not_found, "no_such_file",
                    path.string() + ": no such file: no coordinator was ever started on this folder");
    }
    TRY_ASSIGN(auto database, Database::open(path, {}));
    TRY_ASSIGN(const auto format, stored_format(database));
    if (format > static_cast<std::int64_t>(store_migrations().size())) {
        return fail(ErrorKind::unsupported, "newer_format",
                    path.string() + ": a newer release wrote it; make the backup with that release");
    }
    TRY_ASSIGN(const auto beside, read_head(state));
    TRY_ASSIGN(const auto found, look_at_store(database, beside));
    TRY(require_whole(database, state, found));
    database.at_close(Database::AtClose::fold);
    TRY(database.fold_log());
    TRY_ASSIGN(const auto journal, follow(database, state));
    auto staged = stage_backup(database, state, "local", now_unix_s);
    database.set_watch(nullptr);  // the journal goes first
    return staged;
}

Result<BackupWriter> BackupWriter::begin(fs::path state, fs::path out) {
    std::error_code error;
    out = fs::absolute(out.has_filename() ? out : out.parent_path(), error).lexically_normal();
    const auto beside = out.string() + ".tmp";
    for (const auto& taken : {out, fs::path(beside)}) {
        if (fs::exists(fs::symlink_status(taken, error))) {
            return fail(ErrorKind::invalid, "file_exists",
                        fmt::format("{} already exists{}", taken.string(),
                                    taken == out ? "; name a new folder for the copy"
                                                 : ": a backup was cut short, or is under way; remove it if none is"));
        }
    }
    if (!fs::is_directory(out.parent_path(), error)) {
        return fail(ErrorKind::not_found, "no_such_file",
                    fmt::format("{}: there is no folder {}; make it first", out.string(), out.parent_path().string()));
    }
    const auto inside = fs::canonical(out.parent_path(), error).lexically_relative(fs::canonical(state, error));
    if (!inside.empty() && *inside.begin() != "..") {
        return fail(
            ErrorKind::invalid, "usage",
            out.string() + " lies in the state folder itself; name a place outside it, on another disk at best");
    }
    TRY(make_private_folder(state / "backup"));
    auto lock = FolderLock::acquire(state / "backup");
    if (!lock) {
        return fail(lock.error().kind, lock.error().code,
                    state.string() + ": another backup is under way; try again when it is done");
    }
    fs::remove_all(state / "backup" / "taken", error);
    return BackupWriter(std::move(state), std::move(out), *std::move(lock));
}

/// The stage is taken under another name first: should it be staged anew meanwhile, this copy is still of one moment.
Result<std::uint64_t> BackupWriter::finish() {
    const auto beside = fs::path(out_.string() + ".tmp");
    auto bytes = fill(beside);
    std::error_code ignored;
    fs::remove_all(state_ / "backup" / "taken", ignored);
    if (bytes) {
        if (auto renamed = rename_durably(beside, out_); !renamed) {
            bytes = fail(renamed.error());
        }
    }
    if (!bytes) {
        fs::remove_all(beside, ignored);
    }
    return bytes;
}

Result<std::uint64_t> BackupWriter::fill(const fs::path& beside) const {
    const auto taken = state_ / "backup" / "taken";
    TRY(rename_durably(state_ / "backup" / "staged", taken));
    TRY(make_private_folder(beside));
    TRY(make_private_folder(beside / "snapshots"));
    TRY(copy_files(state_, beside));
    std::error_code error;
    for (auto entry = fs::directory_iterator(taken / "snapshots", error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        TRY(link_or_copy(entry->path(), beside / "snapshots" / entry->path().filename()));
    }
    if (error || !fs::copy_file(taken / "coordinator.db", beside / "coordinator.db", error)) {
        return failed(beside, error, "copy");
    }
    if (const auto identity = load_credentials(beside / "coordinator"); !identity) {
        return fail(with_context(identity.error(), "the coordinator's certificate was being renewed; try again"));
    }
    return flush_tree(beside);
}

void clear_staged_backup(const fs::path& state) {
    std::error_code ignored;
    if (fs::exists(state / "backup", ignored) && FolderLock::acquire(state / "backup")) {
        for (const auto* left : {"next", "staged", "taken"}) {
            fs::remove_all(state / "backup" / left, ignored);
        }
    }
}

}  // namespace causeway
