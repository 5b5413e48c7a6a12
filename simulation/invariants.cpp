// See invariants.h.
#include "simulation/invariants.h"

#include <fmt/format.h>

namespace causeway::simulation {
namespace {

constexpr std::size_t most_notes = 20;  // one broken rule often breaks others at every later step

bool terminal(const std::string& state) {
    return state == "succeeded" || state == "failed" || state == "cancelled";
}

}  // namespace

void Invariants::require(bool holds, const std::string& rule) {
    if (!holds && broken_.size() < most_notes) {
        broken_.push_back(rule);
    }
}

void Invariants::persisted(const Persist& persist) {
    std::visit([&](const auto& save) { check(save); }, persist);
}

void Invariants::check(const SaveExperiment& save) {
    auto& seen = seen_[save.experiment];
    require(!terminal(seen.state),
            fmt::format("experiment {} was {} and became {}", save.experiment, seen.state, save.state));
    seen.state = save.state;
}

void Invariants::check(const SaveDecision& save) {
    auto& seen = seen_[save.experiment];
    require(!terminal(seen.state), "a decision after the end");
    require(save.round == seen.commits.size(),
            fmt::format("a decision on round {} while {} is open", save.round, seen.commits.size()));
    if (save.kind == "cohort") {
        require(seen.cohort.empty(), "a second cohort for one round");
        for (const auto& name : save.detail["members"].items()) {
            seen.cohort.insert(name.text());
        }
    } else if (save.kind == "dropped" || save.kind == "refused") {
        require(seen.left_out.insert(save.detail["node"].text()).second, "a member left a round twice");
    }
}

/// The heart: who is in a round was drawn for it, stayed in it, and is in it once.
void Invariants::check(const SaveCommit& save) {
    auto& seen = seen_[save.experiment];
    require(!terminal(seen.state), "a commit after the end");
    require(save.round == seen.commits.size(),
            fmt::format("round {} committed after {} rounds", save.round, seen.commits.size()));
    Commit commit{save.model, {}};
    for (const auto& [node, update] : save.participants) {
        require(seen.cohort.contains(node), node + " took part without being in the cohort");
        require(!seen.left_out.contains(node), node + " took part although it was left out");
        require(commit.participants.emplace(node, update).second, node + " took part twice");
    }
    if (save.round > 0) {
        const auto quorum = quorum_[save.experiment].of(static_cast<std::uint32_t>(seen.cohort.size()));
        require(save.participants.size() >= quorum, "a commit below the quorum");
    }
    seen.commits.push_back(std::move(commit));
    seen.cohort = {save.next_cohort.begin(), save.next_cohort.end()};
    seen.left_out.clear();
}

void Invariants::check(const SaveEvaluation& save) {
    require(save.round < seen_[save.experiment].commits.size(), "an evaluation of a round that is not committed");
}

void Invariants::sent(const std::string& node, const Message& message) {
    std::visit([&](const auto& m) { check(node, m); }, message);
}

/// Judged against what is durable at the instant of sending.
void Invariants::check(const std::string& node, const Assign& assign) {
    const auto& lease = assign.lease;
    const auto& seen = seen_[lease.experiment];
    require(!seen.commits.empty() && lease.round == seen.commits.size(), "an assignment of a round that is not open");
    require(!seen.commits.empty() && assign.model == seen.commits.back().model,
            "an assignment that does not start from the last commit");
    require(seen.cohort.contains(node), node + " is assigned without being in the persisted cohort");
    require(!seen.left_out.contains(node), node + " is assigned after it was left out");
    auto& attempt = attempts_[{lease.epoch, lease.experiment, lease.round, node}];
    require(lease.attempt == attempt + 1, "an attempt that does not rise by one");
    attempt = lease.attempt;
}

void Invariants::check(const std::string& node, const Counted& counted) {
    const auto& lease = counted.lease;
    const auto found = in_sum_.find({lease.epoch, lease.experiment, lease.round, node});
    require(found != in_sum_.end() && found->second == counted.update, "counted, but not in the sum");
}

void Invariants::check(const std::string& node, const Committed& committed) {
    const auto& commits = seen_[committed.experiment].commits;
    if (committed.round >= commits.size()) {
        require(!committed.counted, "committed said of a round that is not durable");
        return;
    }
    const auto& in = commits[committed.round].participants;
    const auto found = in.find(node);
    const bool counted = found != in.end() && (committed.update == found->second);
    require(counted == committed.counted, "committed says something else than the commit, to " + node);
}

void Invariants::absorbed(std::uint64_t epoch, const UpdateAbsorbed& absorbed) {
    if (absorbed.fetch_error || absorbed.refusal) {
        return;
    }
    const auto added =
        in_sum_.emplace(PlaceKey{epoch, absorbed.experiment, absorbed.round, absorbed.node}, absorbed.update).second;
    require(added, absorbed.node + "'s update is in one sum twice");
}

void Invariants::resolved(const std::string& node, const node::ResolvePending& what) {
    if (!what.counted) {
        return;
    }
    const auto& commits = seen_[what.update.experiment].commits;
    const bool in = what.update.round < commits.size() && commits[what.update.round].participants.contains(node) &&
                    commits[what.update.round].participants.at(node) == what.update.digest;
    require(in, node + " believes that its update counted");
}

}  // namespace causeway::simulation
