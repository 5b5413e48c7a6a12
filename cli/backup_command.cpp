// `backup`: a copy of a coordinator's state folder, while its daemon runs or while none does.
//
// It runs on the coordinator's machine, as the daemon's user: an operator elsewhere has no business with its keys. The
// daemon sets store and snapshots aside in its own folder; copying them out is this process's work
// (coordinator/backup.h). Main thread only.
#include <filesystem>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/doctor_checks.h"
#include "cli/operator_session.h"
#include "common/text.h"
#include "coordinator/backup.h"

namespace causeway::cli {
namespace {

/// By the daemon, or here when the folder's lock is free: then no daemon can start before the copy is staged.
Status stage(const std::filesystem::path& state) {
    const auto lock = FolderLock::acquire(state);
    if (lock) {
        return stage_idle_backup(state, wall_clock_unix_s());
    }
    if (lock.error().code != "state_in_use") {
        return fail(lock.error());
    }
    TRY_ASSIGN(const auto session, OperatorSession::connect(state));
    TRY(session->ask("backup.stage", Json::object()));
    return {};
}

Result<std::uint64_t> back_up(const BackupOptions& options) {
    if (kind_of_state(options.state) != StateKind::coordinator) {
        return fail(ErrorKind::not_found, "no_such_file",
                    fmt::format("{}: no coordinator's state folder; run this on the coordinator's machine and name its "
                                "folder with --state",
                                options.state));
    }
    TRY_ASSIGN(auto writer, BackupWriter::begin(options.state, options.out));
    TRY(stage(options.state));
    return writer.finish();
}

}  // namespace

int run_backup(const BackupOptions& options, Output output) {
    const auto bytes = back_up(options);
    if (!bytes) {
        return output.error(bytes.error());
    }
    output.object("backup", Json::object().set("folder", options.out).set("bytes", *bytes));
    output.line(
        fmt::format("{} holds a whole copy, with the federation's keys: keep it as safe as the folder itself; "
                    "to restore it: causeway coordinator --state {}",
                    options.out, shell_quoted(options.out)));
    return exit_done;
}

}  // namespace causeway::cli
