// `causeway doctor --repair`: what is damaged in a coordinator's store and can be had back is mended, and said.
//
// The one thing that doctor changes, and only when asked (coordinator/store_repair.h). Main thread only.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/doctor_checks.h"
#include "common/text.h"
#include "coordinator/store_repair.h"

namespace causeway::cli {
namespace {

Result<std::vector<std::string>> repair_folder(const std::string& state) {
    if (state.empty()) {
        return fail(ErrorKind::invalid, "usage", "--repair mends a coordinator's state folder: name it with --state");
    }
    if (kind_of_state(state) != StateKind::coordinator) {
        return fail(ErrorKind::invalid, "usage",
                    state +
                        " is no coordinator's state folder: only that has a store to mend; a node mends its own folder "
                        "at its start, and says so");
    }
    TRY_ASSIGN(const auto lock, FolderLock::acquire(state));
    return repair_store(state, wall_clock_unix_s());
}

}  // namespace

int run_repair(const std::string& state, Output output) {
    const auto mended = repair_folder(state);
    if (!mended) {
        return output.error(mended.error());
    }
    for (const auto& line : *mended) {
        output.object("repaired", Json::object().set("what", line));
        output.line(line);
    }
    output.line(mended->empty()
                    ? "the store is whole: there was nothing to mend"
                    : fmt::format("what was there before is in {}/damaged; start the coordinator again, and "
                                  "look at the disk that did this",
                                  shell_quoted(state)));
    return exit_done;
}

}  // namespace causeway::cli
