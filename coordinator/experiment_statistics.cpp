// Round 0, where `data.normalise = "federated"`: the clients' sums, what follows from them, and the first model.
//
// It is a round as any other, of everybody who is there: leases, firewall, quorum, and what is held over restarts. Its
// end is the commit of round 0: the numbers in the experiment's file, their digest in the decision log, whose sums they
// are of, the first model and the next cohort are one transaction. Before it nothing is decided but the cohort, so a
// restart asks the same nodes again. Part of ExperimentMachine (experiment_machine.h). Thread: loop. Pure.
#include <algorithm>
#include <iterator>

#include "configs/canonical.h"
#include "configs/reader.h"
#include "configs/statistics.h"
#include "coordinator/assignment.h"
#include "coordinator/decisions.h"
#include "coordinator/experiment_machine.h"

namespace causeway {

/// A resumed experiment has its parent's numbers.
bool ExperimentMachine::before_statistics() const {
    return records_.empty() && saved_.parent == 0 && needs_statistics(config_);
}

/// Not a draw: the more examples the better, and nobody trains.
void ExperimentMachine::gather_statistics(Turn turn) {
    auto cohort = usable(turn);
    turn.effects.persist.push_back(SaveDecision{id(), 0, decisions::cohort, decisions::cohort_detail(cohort)});
    log_compute(turn, 0, cohort, turn.effects.persist);
    open_round(turn, std::move(cohort), config_.sync.rejoin);
    assign_present(turn);
}

void ExperimentMachine::commit_statistics(Turn turn, const SnapshotWritten& snapshot) {
    set_statistics(config_, snapshot.normalise);
    saved_.file = canonical_toml(config_);
    if (const auto again = read_experiment_or_fail(saved_.file, saved_.name); !again) {  // a restart will have to
        return fail(turn, again.error().code + ": " + again.error().message);
    }
    auto assignment = assignment_of(config_, saved_.submitted_by);
    if (!assignment) {
        return fail(turn, assignment.error().code + ": " + assignment.error().message);
    }
    assignment->continues = assignment_.continues;
    assignment->lease = assignment_.lease;
    assignment_ = *std::move(assignment);
    set_state("running", "", turn.effects);
    turn.effects.persist.push_back(
        SaveDecision{id(), 0, decisions::statistics,
                     decisions::statistics_detail(snapshot.examples, config_.data.shape.back(), snapshot.normalise)});
    const auto participants = round_->participants();
    const auto times = clock_.times(turn.now, snapshot.aggregate);
    auto summary = Json::object()
                       .set("clients", static_cast<std::uint64_t>(participants.size()))
                       .set("cohort", static_cast<std::uint64_t>(round_->plan().cohort.size()))
                       .set("seconds", seconds(times.wall))
                       .set("exchange", seconds(times.exchange))
                       .set("bytes_up", snapshot.bytes_up_total - bytes_up_seen_)
                       .set("bytes_down", snapshot.bytes_down_total - bytes_down_seen_);
    note_traffic(snapshot.bytes_up_total, snapshot.bytes_down_total);
    for (const auto& [node, update] : participants) {
        last_counted_[node] = {0, update};
    }
    records_.add(record_of({0, snapshot.model, snapshot.bytes, summary, std::nullopt}));
    clock_.begin(turn.now);
    std::vector<Persist> log;
    auto cohort = draw_cohort(turn, 1, log);
    turn.effects.persist.push_back(
        SaveCommit{id(), 0, snapshot.model, snapshot.bytes, participants, cohort, std::move(summary)});
    std::ranges::move(log, std::back_inserter(turn.effects.persist));
    tell_committed(turn);
    round_.reset();
    after_commit(turn, std::move(cohort));
}

}  // namespace causeway
