// What must hold at every step of every world, whatever fails. A broken rule is noted, not thrown: the test shows all.
//
//   rounds rise by one; the terminal states absorb
//   a commit's participants are of its persisted cohort, at least the quorum, none of them dropped or refused in it
//   an update is in a sum at most once per process and round, and its client is told `counted` only after that
//   an assignment names a persisted cohort and the last committed model; attempts rise within an epoch and round
//   `committed` is said only of durable commits and says who is in them; clients resolve their updates by that
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "client/effects.h"
#include "configs/experiment.h"
#include "coordinator/effects.h"

namespace causeway::simulation {

class Invariants {
public:
    // Called by the hosts when it happens.
    void persisted(const Persist& persist);
    void sent(const std::string& node, const Message& message);
    void absorbed(std::uint64_t epoch, const UpdateAbsorbed& absorbed);
    void resolved(const std::string& node, const node::ResolvePending& what);

    /// The quorum rule of an experiment, to check commits with.
    void set_quorum(ExperimentId experiment, CountOrShare quorum) { quorum_[experiment] = quorum; }
    [[nodiscard]] const std::vector<std::string>& broken() const { return broken_; }

private:
    struct Commit {
        Digest model;
        std::map<std::string, Digest> participants;
    };
    struct Seen {
        std::string state;
        std::vector<Commit> commits;
        std::set<std::string> cohort;    // of the open round
        std::set<std::string> left_out;  // dropped or refused in it
    };
    using PlaceKey = std::tuple<std::uint64_t, ExperimentId, std::uint32_t, std::string>;  // epoch, .., round, node

    void check(const SaveExperiment& save);
    void check(const SaveDecision& save);
    void check(const SaveCommit& save);
    void check(const SaveEvaluation& save);
    void check(const SaveDeclaration&) {}
    void check(const std::string& node, const Assign& assign);
    void check(const std::string& node, const Counted& counted);
    void check(const std::string& node, const Committed& committed);
    template <class Other>
    void check(const std::string&, const Other&) {}
    void require(bool holds, const std::string& rule);

    std::map<ExperimentId, Seen> seen_;
    std::map<ExperimentId, CountOrShare> quorum_;
    std::map<PlaceKey, std::uint32_t> attempts_;
    std::map<PlaceKey, Digest> in_sum_;
    std::vector<std::string> broken_;
};

}  // namespace causeway::simulation
