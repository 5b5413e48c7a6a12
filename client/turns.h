// The turns of relays that a node is at: as a client one at a time, as a host one for each of its groups.
//
// Nothing of a turn outlives it but its segment, which stays here until the coordinator has it or the round is over: a
// turn that breaks off is assigned again, under another number, from the last hand-over. So there is nothing to keep on
// the disk and nothing to ask about after a restart; after a lost session only which experiments have ended meanwhile.
// Part of the session machine (session.h). Thread: loop. Pure.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "client/effects.h"

namespace causeway::node {

class Turns {
public:
    /// In place of an older turn of the same group. The first progress is the answer.
    void begin(const Assign& assign, Effects& effects);
    /// returns  whether some turn waited for it
    bool fetched(Instant now, const ModelFetched& event, Effects& effects);
    void done(Instant now, const TurnDone& event, Effects& effects);
    /// returns  the progress to be said; nothing: not of a turn, or said a moment ago
    std::optional<Progress> progress(Instant now, const TrainingProgress& event);
    void dropped(const Lease& lease, Effects& effects);
    /// The round is committed, or the experiment over (`round` of all): nothing of it is needed any more.
    void over(std::uint64_t experiment, std::uint32_t round, Effects& effects);
    /// The session is lost, and with it every turn.
    void lose_link(Effects& effects);
    void tick(Instant now, Effects& effects);

    [[nodiscard]] Instant deadline() const;
    [[nodiscard]] bool working() const { return !works_.empty(); }
    /// Experiments that had turns here and are not heard to be over: of each, segments and room may be kept.
    [[nodiscard]] const std::set<std::uint64_t>& experiments() const { return experiments_; }

private:
    enum class Phase { fetching, waiting, running, offered };
    struct Work {
        Assign assign;
        Phase phase = Phase::fetching;
        Duration pause{};
        Instant fetch_at = never;
        Instant progress_at{};
    };
    using Key = std::pair<std::uint64_t, std::uint32_t>;  // experiment, group

    void stop(const Work& work, Effects& effects) const;
    void let_go(const Key& key, std::size_t keep, Effects& effects);
    [[nodiscard]] Work* find(const Lease& lease);

    std::map<Key, Work> works_;
    std::set<std::uint64_t> experiments_;
    std::map<Key, std::deque<Digest>> kept_;  // segments made here, the newest last
};

}  // namespace causeway::node
