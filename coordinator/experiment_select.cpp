// Who may be drawn for a round, who is, and what the log says about it.
//
// A draw that leaves somebody out who is there is explained in the decision log, in the transaction of the cohort
// itself. Part of ExperimentMachine (experiment_machine.h). Thread: loop. Pure.
#include <algorithm>
#include <iterator>

#include "coordinator/decisions.h"
#include "coordinator/experiment_machine.h"
#include "coordinator/limits.h"
#include "coordinator/selection.h"

namespace causeway {

/// Bits depend on the build of the engine: a node of another one would make another model. What does not name itself
/// as an engine (`causeway 1.2.3`) is not judged by its name: what it sends is.
bool ExperimentMachine::of_this_build(const Member& member) const {
    constexpr std::string_view engine = "causeway ";
    const bool named = member.software.starts_with(engine) && member.software.size() > engine.size() &&
                       member.software[engine.size()] >= '0' && member.software[engine.size()] <= '9';
    return saved_.build.empty() || !named || member.software == saved_.build;
}

/// A member that was dropped is drawn again only after it resynced; one at work elsewhere has its assignment.
std::vector<std::string> ExperimentMachine::eligible(const Turn& turn) const {
    auto names = turn.members.live_holders(config_.data.dataset);
    std::erase_if(names, [&](const auto& name) {
        const auto& member = *turn.members.by_node(name);
        return lapsed_.contains(name) || turn.busy.nodes.contains(name) || !of_this_build(member) ||
               (relays_ && !member.splits);
    });
    return names;
}

/// Nobody at all is never enough, whatever the file says.
bool ExperimentMachine::enough(std::size_t eligible) const {
    return eligible >= std::max<std::size_t>(config_.sync.min_clients, 1);
}

std::vector<std::string> ExperimentMachine::usable(const Turn& turn) const {
    auto names = eligible(turn);
    if (expects_members(turn)) {
        return {};
    }
    // A latecomer on a slow line has not resynced yet when the next round is drawn: it is there all the same, and the
    // others do not wait for its word.
    const auto behind = std::ranges::count_if(turn.members.live_holders(config_.data.dataset), [&](const auto& name) {
        return lapsed_.contains(name) && latecomers_.has(name);
    });
    const bool will_do = !names.empty() && enough(names.size() + static_cast<std::size_t>(behind));
    return will_do ? names : std::vector<std::string>{};
}

/// Who was there is decided by time and who waited longest by the rounds before: the result is persisted.
std::vector<std::string> ExperimentMachine::draw_cohort(const Turn& turn, std::uint32_t round,
                                                        std::vector<Persist>& log) {
    const auto names = usable(turn);
    if (names.empty() || (relays_ && live_hosts(turn).empty())) {
        return {};
    }
    auto punctual = names;
    std::erase_if(punctual, [&](const auto& name) {
        return relays_ ? latecomers_.rests(name, round) : latecomers_.has(name);
    });
    const bool waited_for = !can_do_without(punctual);
    latecomers_.draw(round, names, waited_for || relays_);  // a turn of a relay is waited for whosever it is
    if (waited_for) {
        punctual = names;
    }
    std::vector<Candidate> candidates;
    for (const auto& name : punctual) {
        const auto drawn = last_drawn_.find(name);
        candidates.push_back({name, turn.members.examples_of(name, config_.data.dataset),
                              drawn == last_drawn_.end() ? 0 : drawn->second});
    }
    const bool together = relays_ && relays_->turns == RelayPlan::Turns::together;
    const auto there = static_cast<std::uint32_t>(punctual.size());
    const auto most = together ? limits::clients_together : there;
    // A share of those there, or a count.
    const Selection selection{.rule = config_.sync.selection,
                              .wanted = std::min(most, config_.sync.cohort.of(there)),
                              .seed = config_.experiment.seed,
                              .round = round};
    auto cohort = select(selection, candidates);
    if (!waited_for) {  // beside the others: it takes nobody's place
        std::ranges::copy_if(names, std::back_inserter(cohort),
                             [&](const auto& name) { return latecomers_.tried(name); });
        std::ranges::sort(cohort);
    }
    for (const auto& name : cohort) {
        last_drawn_[name] = round;
    }
    if (!latecomers_.empty()) {
        log.push_back(SaveDecision{id(), round, decisions::late, decisions::late_detail(latecomers_.detail())});
    }
    log_selection(turn, round, cohort, log);
    log_compute(turn, round, cohort, log);
    return cohort;
}

/// Others are there, and as many as have to report.
bool ExperimentMachine::can_do_without(const std::vector<std::string>& punctual) const {
    const auto count = static_cast<std::uint32_t>(punctual.size());
    return count > 0 && config_.sync.quorum.of(std::min(count, config_.sync.cohort.of(count))) <= count;
}

void ExperimentMachine::log_selection(const Turn& turn, std::uint32_t round, const std::vector<std::string>& cohort,
                                      std::vector<Persist>& log) const {
    const auto there = turn.members.live_holders(config_.data.dataset);
    if (there.size() == cohort.size()) {
        return;
    }
    auto left_out = Json::object();
    for (const auto& name : there) {
        if (!std::ranges::binary_search(cohort, name) && left_out.fields().size() < limits::names_in_selection) {
            left_out.set(name, !of_this_build(*turn.members.by_node(name)) ? "other_build"
                               : lapsed_.contains(name)                    ? "away"
                               : turn.busy.nodes.contains(name)            ? "busy"
                               : latecomers_.has(name)                     ? "late"
                               : relays_ && !turn.members.by_node(name)->splits ? "no_split"
                                                                           : "not_drawn");
        }
    }
    log.push_back(SaveDecision{id(), round, decisions::selection,
                               decisions::selection_detail(config_.sync.selection, there.size(), cohort.size(),
                                                           std::move(left_out))});
}

/// Equal inputs on equal signatures give equal bits: a change of one is part of the run's record.
void ExperimentMachine::log_compute(const Turn& turn, std::uint32_t round, const std::vector<std::string>& cohort,
                                    std::vector<Persist>& log) {
    for (const auto& name : cohort) {
        const auto& member = *turn.members.by_node(name);
        auto& logged = compute_logged_[name];
        if (logged != member.compute_signature) {
            logged = member.compute_signature;
            log.push_back(
                SaveDecision{id(), round, decisions::compute,
                             decisions::compute_detail(name, member.software, member.compute_signature)});
        }
    }
}

}  // namespace causeway
