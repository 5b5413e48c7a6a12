// What must hold at every step of every world, whatever fails. A broken rule is noted, not thrown: the test shows all.
//
//   rounds rise by one; the terminal states absorb; a lost quorum is said only of a round that cannot reach it
//   a cohort is sorted, without doubles, of the size that the file asks for, and its members work on nothing else
//   a commit's participants are of its persisted cohort, at least the quorum, none of them dropped or refused in it,
//   and exactly those whose updates were added to this process's sum of that round; their weights add up to more than 0
//   an update is in a sum at most once per process and round, after it was offered to this process under a lease of
//   that round which was not older than the last one assigned, and its client is told `counted` only after that
//   nothing is said before it is durable: an assignment names a persisted cohort and the last committed model;
//   `committed`, `dropped`, verdicts, `ended`, an operator's events and a submission's answer repeat the store
//   attempts rise within an epoch and round
//   a client's state moves on once for each commit that has its update, and it gives up no update that counts;
//   it trains for an experiment only when it knows what became of every update it has offered for it
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "client/effects.h"
#include "configs/experiment.h"
#include "coordinator/effects.h"

namespace causeway::simulation {

class Invariants {
public:
    // Called by the hosts when it happens.
    void started(std::uint64_t epoch) { epoch_ = epoch; }
    void persisted(const Persist& persist);
    void sent(const std::string& node, const Message& message);
    void told_operator(const Message& message);
    void heard(const std::string& node, const Message& message);
    void opened(const RoundOpened& opened);
    void absorbed(const AbsorbUpdate& job, const UpdateAbsorbed& absorbed);
    void offers(const std::string& node, const Message& message);
    void trains(const std::string& node, const Assign& assign);
    void resolved(const std::string& node, const node::ResolvePending& what);
    /// The node has lost what it had not flushed: what it offered may be among that.
    void lost_power(const std::string& node) { offered_.erase(node); }
    /// It lies: what it believes is its own affair from here on.
    void distrust(const std::string& node) { liars_.insert(node); }

    [[nodiscard]] const std::vector<std::string>& broken() const { return broken_; }
    [[nodiscard]] std::uint64_t checks() const { return checks_; }

private:
    struct Commit {
        Digest model;
        std::map<std::string, Digest> participants;
    };
    /// Of an open round of relays: what is durable of it.
    struct Relays {
        std::vector<std::set<std::string>> groups;
        std::vector<std::string> hosts;
        std::map<std::uint32_t, std::pair<Digest, Digest>> last;  // by group: client's and host's segment
        std::map<std::string, Digest> handed_over;                // by client, its segment
        std::uint64_t examples = 0;
        std::set<Digest> here;  // segments that the coordinator holds

        [[nodiscard]] bool open() const { return !groups.empty(); }
    };
    struct Seen {
        std::string state;
        std::uint32_t first = 0;  // the number of the first commit: a resumed experiment's is its parent's
        std::vector<Commit> commits;
        std::set<std::string> cohort;                 // of the open round
        std::map<std::string, std::string> left_out;  // dropped or refused in it: the decision's code
        std::set<std::string> late;  // ever left out for being late: such a member may rest
        Relays relays;

        [[nodiscard]] std::uint32_t open_round() const { return first + static_cast<std::uint32_t>(commits.size()); }
        [[nodiscard]] const Commit* commit(std::uint32_t round) const {
            return round >= first && round - first < commits.size() ? &commits[round - first] : nullptr;
        }
    };
    struct InSum {
        Digest update;
        std::int64_t weight = 0;
    };
    using RoundKey = std::tuple<std::uint64_t, ExperimentId, std::uint32_t>;  // epoch, .., round
    using Members = std::map<std::string, InSum>;

    void check(const SaveExperiment& save);
    void check(const SaveDecision& save);
    void check(const SaveCommit& save);
    void check(const SaveEvaluation& save);
    void check(const SaveDeclaration&) {}
    enum class Draw { by_rule, everybody };  // of a round of statistics
    void check_cohort(ExperimentId id, const std::vector<std::string>& cohort, Draw draw);
    void check_sum(const SaveCommit& save);
    void check_relays(const SaveDecision& save);
    void check_handover(const SaveDecision& save);
    void check_relay_sum(const SaveCommit& save);
    void check_turn(const std::string& node, const Assign& assign);
    void check(const std::string& node, const Assign& assign);
    void check(const std::string& node, const Counted& counted);
    void check(const std::string& node, const Refused& refused);
    void check(const std::string& node, const Dropped& dropped);
    void check(const std::string& node, const Committed& committed);
    void check(const std::string& node, const Ended& ended);
    template <class Other>
    void check(const std::string&, const Other&) {}
    /// `rule` and `who` are put together only when it is broken.
    void require(bool holds, std::string_view rule, std::string_view who = {});

    std::map<ExperimentId, Seen> seen_;
    std::map<ExperimentId, Experiment::Sync> rules_;  // of its file
    std::map<RoundKey, std::map<std::string, std::uint32_t>> attempts_;
    std::map<RoundKey, Members> in_sum_;
    std::map<RoundKey, std::set<std::pair<std::string, Digest>>> heard_;  // offered under a good lease
    std::map<std::string, std::map<Digest, ExperimentId>> offered_;       // by node: what it knows no fate of
    std::set<std::tuple<std::string, ExperimentId, std::uint32_t>> moved_on_;
    std::set<std::string> liars_;
    std::uint64_t epoch_ = 0;
    std::uint64_t checks_ = 0;
    std::vector<std::string> broken_;
};

}  // namespace causeway::simulation
