// A line is written when its fact is handed to the store: after a crash in that instant the restart's own log tells.
#include "coordinator/daemon_log.h"

#include <variant>

#include <fmt/format.h>

#include "common/log.h"
#include "coordinator/decisions.h"

namespace causeway {
namespace {

void tell(const SaveExperiment& saved) {
    log_info("coordinator", fmt::format("experiment {} ({}) is {}{}", saved.experiment, saved.name, saved.state,
                                        saved.reason.empty() ? "" : ": " + saved.reason));
}

void tell(const SaveCommit& commit) {
    if (commit.round > 0) {  // 0 is the initial model
        log_info("coordinator", fmt::format("experiment {}: round {} is committed with {} updates", commit.experiment,
                                            commit.round, commit.participants.size()));
    }
}

/// The cohort stands in every commit; what was lost or refused is news.
void tell(const SaveDecision& decision) {
    const auto& detail = decision.detail;
    if (decision.kind == decisions::dropped || decision.kind == decisions::refused) {
        log_warn("coordinator",
                 fmt::format("experiment {}: round {}: {} {}: {} ({})", decision.experiment, decision.round,
                             detail["node"].text(), decision.kind == decisions::dropped ? "is dropped" : "is refused",
                             detail["message"].text(), detail["code"].text()));
    }
}

template <class Other>
void tell(const Other&) {}

}  // namespace

void log_persist(const Persist& persist) {
    std::visit([](const auto& fact) { tell(fact); }, persist);
}

}  // namespace causeway
