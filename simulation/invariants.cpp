// See invariants.h.
#include "simulation/invariants.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/json_lists.h"
#include "configs/reader.h"
#include "configs/statistics.h"
#include "coordinator/decisions.h"

namespace causeway::simulation {
namespace {

constexpr std::size_t most_notes = 20;  // one broken rule often breaks others at every later step

bool terminal(const std::string& state) {
    return state == "succeeded" || state == "failed" || state == "cancelled";
}

}  // namespace

void Invariants::require(bool holds, std::string_view rule, std::string_view who) {
    ++checks_;
    if (!holds && broken_.size() < most_notes) {
        broken_.push_back(who.empty() ? std::string(rule) : fmt::format("{}: {}", who, rule));
    }
}

// ---------------------------------------------------------------- what is stored

void Invariants::persisted(const Persist& persist) {
    std::visit([&](const auto& save) { check(save); }, persist);
}

void Invariants::check(const SaveExperiment& save) {
    if (!rules_.contains(save.experiment)) {
        const auto config = read_experiment_or_fail(save.file, save.name);
        require(config.has_value(), "a stored file cannot be read");
        rules_[save.experiment] = config ? config->sync : Experiment::Sync{};
    }
    auto& seen = seen_[save.experiment];
    require(!terminal(seen.state), "an experiment that was over changed its state", save.state);
    if (save.state == "failed" && save.reason.starts_with("quorum_lost")) {
        const auto quorum = rules_[save.experiment].quorum.of(static_cast<std::uint32_t>(seen.cohort.size()));
        require(seen.cohort.size() - seen.left_out.size() < quorum, "a quorum was called lost that could be reached");
    }
    seen.state = save.state;
    seen.first = save.parent_round;
}

void Invariants::check(const SaveDecision& save) {
    auto& seen = seen_[save.experiment];
    require(!terminal(seen.state), "a decision after the end", save.kind);
    require(save.round == seen.open_round(), "a decision on a round that is not open", save.kind);
    if (save.kind == decisions::cohort) {
        require(seen.cohort.empty(), "a second cohort for one round");
        const auto cohort = texts_of(save.detail["members"]);
        require(!cohort.empty(), "a cohort of nobody");
        check_cohort(save.experiment, cohort, seen.commits.empty() ? Draw::everybody : Draw::by_rule);
    } else if (save.kind == decisions::dropped || save.kind == decisions::refused) {
        const auto node = save.detail["node"].text();
        require(seen.cohort.contains(node), "left a round that it was not in", node);
        const auto code = save.detail["code"].text();
        require(seen.left_out.emplace(node, code).second, "left a round twice", node);
        if (code == "straggler_deadline" || code == "not_waited_for") {
            seen.late.insert(node);
        }
    } else {
        check_relays(save);
    }
}

/// A client holds one assignment; a share of unknown members bounds no size, a count does. Who has been late may rest
/// (coordinator/latecomers.h): it is there, so min_clients is met, and it is not drawn.
void Invariants::check_cohort(ExperimentId id, const std::vector<std::string>& cohort, Draw draw) {
    require(std::ranges::adjacent_find(cohort, std::ranges::greater_equal{}) == cohort.end(),
            "a cohort is not sorted, or names a member twice");
    const auto& rules = rules_[id];
    const auto there = cohort.size() + seen_[id].late.size();
    if (draw == Draw::everybody) {
        require(there >= rules.min_clients, "a cohort of fewer than min_clients");
    } else if (rules.cohort.kind == CountOrShare::Kind::count) {
        require(cohort.size() <= rules.cohort.count, "a cohort is larger than the file says");
    } else if (rules.cohort.share == 1) {
        require(cohort.empty() || there >= rules.min_clients, "a cohort of fewer than min_clients");
    }
    for (const auto& [other, seen] : seen_) {
        if (other == id || terminal(seen.state)) {
            continue;
        }
        for (const auto& node : cohort) {
            require(!seen.cohort.contains(node), "drawn while it works on another experiment", node);
        }
    }
    seen_[id].cohort = {cohort.begin(), cohort.end()};
}

/// The heart: who is in a round was drawn for it, stayed in it, and is in it once.
void Invariants::check(const SaveCommit& save) {
    auto& seen = seen_[save.experiment];
    require(!terminal(seen.state), "a commit after the end");
    require(save.round == seen.open_round(), "a round was committed twice, or rounds before it are missing");
    Commit commit{save.model, {}};
    for (const auto& [node, update] : save.participants) {
        require(seen.cohort.contains(node), "took part without being in the cohort", node);
        require(!seen.left_out.contains(node), "took part although it was left out", node);
        require(commit.participants.emplace(node, update).second, "took part twice", node);
    }
    if (!seen.commits.empty() || !seen.cohort.empty()) {  // not the first model that is made from the seed
        const auto quorum = rules_[save.experiment].quorum.of(static_cast<std::uint32_t>(seen.cohort.size()));
        require(save.participants.size() >= quorum, "a commit below the quorum");
        require(save.participants.size() + seen.left_out.size() == seen.cohort.size(),
                "a commit before every member had reported or was dropped");
        seen.relays.open() ? check_relay_sum(save) : check_sum(save);
    }
    seen.relays = {};
    seen.commits.push_back(std::move(commit));
    seen.left_out.clear();
    seen.cohort.clear();
    check_cohort(save.experiment, save.next_cohort, Draw::by_rule);
}

/// Exactly what this process has added, and all of it: a sum made by an earlier process died with it.
void Invariants::check_sum(const SaveCommit& save) {
    const auto sum = in_sum_.extract({epoch_, save.experiment, save.round});
    const auto members = sum.empty() ? Members{} : std::move(sum.mapped());
    require(members.size() == save.participants.size(), "the sum holds other updates than the commit says");
    std::int64_t weight = 0;
    for (const auto& [node, update] : save.participants) {
        const auto found = members.find(node);
        require(found != members.end() && found->second.update == update, "committed, but not in the sum", node);
        weight += found != members.end() ? found->second.weight : 0;
    }
    require(weight > 0, "the weights of a commit add up to nothing");
    heard_.erase({epoch_, save.experiment, save.round});
    attempts_.erase({epoch_, save.experiment, save.round});
}

void Invariants::check(const SaveEvaluation& save) {
    require(seen_[save.experiment].commit(save.round) != nullptr, "an evaluation of a round that is not committed");
}

// ---------------------------------------------------------------- what is said

void Invariants::sent(const std::string& node, const Message& message) {
    std::visit([&](const auto& m) { check(node, m); }, message);
}

/// Judged against what is durable at the instant of sending.
void Invariants::check(const std::string& node, const Assign& assign) {
    const auto& lease = assign.lease;
    const auto& seen = seen_[lease.experiment];
    require(!terminal(seen.state), "assigned after the end", node);
    const bool statistics = assign.program == statistics_program;
    require(seen.commits.empty() == statistics && lease.round == seen.open_round(), "assigned a round that is not open",
            node);
    if (statistics) {
        require(assign.model.empty() && seen.cohort.contains(node), "asked for its sums without being in the cohort",
                node);
    } else if (assign.segment.empty()) {
        require(!seen.commits.empty() && assign.model == seen.commits.back().model,
                "assigned a start that is not the last commit", node);
        require(seen.cohort.contains(node), "assigned without being in the persisted cohort", node);
    } else {
        check_turn(node, assign);
    }
    require(!seen.left_out.contains(node), "assigned after it was left out", node);
    require(lease.epoch == epoch_, "assigned under an older process's lease", node);
    auto& attempt = attempts_[{lease.epoch, lease.experiment, lease.round}][node];
    require(lease.attempt > attempt, "an attempt that does not rise",
            node);  // by more where one found no link to go by
    attempt = lease.attempt;
}

void Invariants::check(const std::string& node, const Counted& counted) {
    const auto& lease = counted.lease;
    const auto sum = in_sum_.find({lease.epoch, lease.experiment, lease.round});
    const auto& relays = seen_[lease.experiment].relays;
    const bool in = relays.open() ? relays.here.contains(counted.update) ||
                                        std::ranges::count(relays.hosts, node) > 0  // it may keep it alone
                                  : sum != in_sum_.end() && sum->second.contains(node) &&
                                        sum->second.at(node).update == counted.update;
    require(in, "told counted, but not in the sum", node);
}

/// A stale lease and a duplicate are no verdicts on the member's update.
void Invariants::check(const std::string& node, const Refused& refused) {
    if (refused.code == "stale_lease" || refused.code == "duplicate" || liars_.contains(node)) {
        return;
    }
    const auto& left = seen_[refused.lease.experiment].left_out;
    require(left.contains(node) && left.at(node) == refused.code, "told of a refusal that is not durable", node);
}

void Invariants::check(const std::string& node, const Dropped& dropped) {
    const auto& left = seen_[dropped.lease.experiment].left_out;
    require(left.contains(node) && left.at(node) == dropped.code, "told of a drop that is not durable", node);
}

void Invariants::check(const std::string& node, const Committed& committed) {
    const auto* commit = seen_[committed.experiment].commit(committed.round);
    if (commit == nullptr) {
        require(!committed.counted, "committed said of a round that is not durable", node);
        return;
    }
    const auto& in = commit->participants;
    const auto found = in.find(node);
    const bool counted = found != in.end() && (committed.update == found->second);
    require(counted == committed.counted, "committed says something else than the commit", node);
}

void Invariants::check(const std::string& node, const Ended& ended) {
    const auto found = seen_.find(ended.experiment);
    if (found == seen_.end()) {
        require(ended.state == "failed", "told of an end of what never was", node);
    } else {
        require(terminal(found->second.state) && found->second.state == ended.state,
                "told of an end that is not durable", node);
    }
}

/// Events repeat commits and ends; a submission is answered when it is stored.
void Invariants::told_operator(const Message& message) {
    const auto* reply = std::get_if<Reply>(&message);
    const auto body = reply != nullptr && !reply->error ? Json::parse(reply->body) : Result<Json>(Json());
    if (!body || body->is_null()) {
        return;
    }
    const auto id = static_cast<ExperimentId>((*body)["experiment"].integer());
    if ((*body)["event"].text() == "round") {
        const auto* commit = seen_[id].commit(static_cast<std::uint32_t>((*body)["round"].integer()));
        require(commit != nullptr && commit->model.hex() == (*body)["model_sha256"].text(),
                "an operator is told of a round that is not durable");
    } else if ((*body)["event"].text() == "done") {
        const auto state = (*body)["state"].text();
        require(std::ranges::any_of(seen_, [&](const auto& entry) { return entry.second.state == state; }),
                "an operator is told of an end that is not durable");
    } else if ((*body)["state"].text() == "queued" && body->has("id")) {
        require(seen_.contains(static_cast<ExperimentId>((*body)["id"].integer())),
                "a submission is answered before it is durable");
    }
}

// ---------------------------------------------------------------- sums and clients

void Invariants::heard(const std::string& node, const Message& message) {
    const auto* offer = std::get_if<Offer>(&message);
    if (offer == nullptr || offer->lease.epoch != epoch_) {
        return;
    }
    const RoundKey round{epoch_, offer->lease.experiment, offer->lease.round};
    const auto open = attempts_.find(round);  // nobody has a lease of a round that is over
    if (open != attempts_.end() && open->second.contains(node) && offer->lease.attempt >= open->second.at(node)) {
        heard_[round].emplace(node, offer->update.digest);
    }
}

void Invariants::absorbed(const AbsorbUpdate& job, const UpdateAbsorbed& absorbed) {
    if (absorbed.fetch_error || absorbed.refusal) {
        return;
    }
    if (!job.segment.empty()) {
        seen_[absorbed.experiment].relays.here.insert(absorbed.update);
        return;
    }
    const RoundKey round{epoch_, absorbed.experiment, absorbed.round};
    const auto offers = heard_.find(round);
    require(offers != heard_.end() && offers->second.contains({absorbed.node, absorbed.update}),
            "its update is in a sum without a lease", absorbed.node);
    auto& sum = in_sum_[round];
    const auto added = sum.emplace(absorbed.node, InSum{absorbed.update, job.update.weight}).second;
    require(added, "its update is in one sum twice", absorbed.node);
}

void Invariants::offers(const std::string& node, const Message& message) {
    if (const auto* offer = std::get_if<Offer>(&message)) {
        offered_[node].emplace(offer->update.digest, offer->update.experiment);
    }
}

void Invariants::trains(const std::string& node, const Assign& assign) {
    const bool waits = std::ranges::any_of(
        offered_[node], [&](const auto& offer) { return offer.second == assign.lease.experiment; });
    require(!waits || liars_.contains(node), "trains on while an update of it has no fate", node);
}

void Invariants::resolved(const std::string& node, const node::ResolvePending& what) {
    offered_[node].erase(what.update.digest);
    if (liars_.contains(node)) {
        return;
    }
    const auto* commit = seen_[what.update.experiment].commit(what.update.round);
    const bool in =
        commit != nullptr && commit->participants.contains(node) && commit->participants.at(node) == what.update.digest;
    if (what.counted) {
        require(in, "believes that its update counted", node);
        require(moved_on_.emplace(node, what.update.experiment, what.update.round).second,
                "its state moved on twice for one round", node);
    } else {
        require(!in, "gave up an update that counts", node);
    }
}

}  // namespace causeway::simulation
