// A copy of a coordinator's state folder from which a coordinator starts, taken while the daemon goes on.
//
// Two halves, so that the daemon writes nowhere but into its own folder, wherever the copy lies. First, in one task
// of the store thread, the store and the snapshots that it names are set aside in STATE/backup/staged: hard links cost
// nothing, and what is set aside cannot be removed by a later commit. Then the command takes that over, adds the
// identity and the settings, flushes everything and renames it to its place: a copy is whole, or it is not there.
//
//   STATE/backup/lock      one command at a time    staged/, taken/   coordinator.db, snapshots/
//
// The copy's store bears a mark, by which its first start knows that history may have gone on without it (store.h).
// errors of all functions: io (`disk_full`), corrupt, besides those named
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/file.h"
#include "coordinator/database.h"

namespace causeway {

/// The first half. `by` stands in the audit log, which says so before the copy is taken: the copy knows of itself.
///
/// threads  the store thread, or whoever holds the folder's lock while no daemon runs
/// errors   corrupt `snapshot_lost`: a model from which an experiment would go on is not there
/// cost     reads the whole database
Status stage_backup(Database& database, const std::filesystem::path& state, const std::string& by,
                    std::int64_t now_unix_s);

/// The first half where no daemon runs and the caller holds the folder's lock; the epoch is not raised.
///
/// errors   not_found `no_such_file`: there is no store; unsupported `newer_format`
Status stage_idle_backup(const std::filesystem::path& state, std::int64_t now_unix_s);

/// The second half: what has been staged, with the rest of the folder, under `out`. One process at a time.
class BackupWriter {
public:
    /// Before anything is staged. Clears what a killed command left in STATE.
    ///
    /// errors   invalid `file_exists`: `out` is there, or `out`.tmp; `usage`: it lies in the folder itself;
    ///          not_found: the folder that it is to be made in; refused `state_in_use`: another backup is under way
    static Result<BackupWriter> begin(std::filesystem::path state, std::filesystem::path out);

    /// On failure nothing is left under `out`, nor beside it. Gives the bytes of the copy.
    Result<std::uint64_t> finish();

private:
    BackupWriter(std::filesystem::path state, std::filesystem::path out, FolderLock lock)
        : state_(std::move(state)), out_(std::move(out)), lock_(std::move(lock)) {}
    Result<std::uint64_t> fill(const std::filesystem::path& beside) const;

    std::filesystem::path state_;
    std::filesystem::path out_;
    FolderLock lock_;
};

/// At the daemon's start: nothing staged is left, unless a command is at work with it.
void clear_staged_backup(const std::filesystem::path& state);

}  // namespace causeway
