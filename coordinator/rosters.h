// Who may talk to whom: one roster per node, made from the pairs that open rounds stream between.
//
// A roster is sent before the assignment that needs it, again when it changes, and renewed at a third of its life while
// it holds anybody, so that a coordinator that is gone leaves no node open to others for long. Thread: loop. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/membership.h"
#include "coordinator/round.h"

namespace causeway {

constexpr Duration roster_life = std::chrono::seconds(60);
constexpr Duration roster_renewal = std::chrono::seconds(20);

class Rosters {
public:
    struct Pair {
        ExperimentId experiment = 0;
        StreamPair nodes;
    };

    /// Puts what has to be told before all else that is sent. returns  when to look again
    ///
    /// cost  O(pairs + nodes that have a roster)
    Instant keep(Instant now, const std::vector<Pair>& pairs, const Membership& members, CoordinatorEffects& effects);

private:
    struct Told {
        SessionId session = 0;
        Roster roster;
        Instant renew_at = never;
    };

    std::map<std::string, Told> told_;  // by node
};

}  // namespace causeway
