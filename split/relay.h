// The relays of one round as a pure machine: in every group one client after another trains its segment with the host.
//
// A turn ends with a hand-over: the digests of both segments, optimizer state included, as the client and the host hold
// them. The next turn of the group starts from there. What a lost client or host had begun after the last hand-over is
// rolled back: its group goes on from that hand-over, without the client (or waiting for it, by rule), on another host
// when the host is gone. With `handover_copy = "none"` nobody but the host holds the server segment, so a lost host
// takes its group's round back to the beginning.
//
// Whatever arrival or time decides here is a RelayDecision. The caller persists it before it acts on it, and restore()
// brings a relay to the same point from the log alone: a restart, a replay and the first run are one history.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/digest.h"
#include "split/grouping.h"

namespace causeway {

/// Both segments after a turn. Empty digests: the round's start.
struct Handover {
    Digest client_segment;
    Digest server_segment;
    bool operator==(const Handover&) const = default;
};

/// A client's turn as it is assigned. An attempt that is not the group's latest changes nothing.
struct RelayTurn {
    std::uint32_t group = 0;
    std::uint32_t attempt = 0;  // of the group, rises with every turn and every repetition
    std::string client;
    std::string host;
    Handover start;
    bool operator==(const RelayTurn&) const = default;
};

struct RelayDecision {
    enum class Kind {
        handover,   // the client's turn counts
        skipped,    // the client is out of this round: lost, refused, or too late
        restarted,  // the group begins its round anew: its last server segment is lost
        moved,      // the group has another host
    };
    Kind kind = Kind::handover;
    std::uint32_t group = 0;
    std::string node;  // the client; of `moved` the new host
    Handover segments{};
    std::uint64_t examples = 0;
    bool operator==(const RelayDecision&) const = default;
};
std::string_view to_string(RelayDecision::Kind kind);

struct RelayPlan {
    enum class LostClient { skip, wait };  // wait: until the caller skips it (its `rejoin` is over)
    enum class Copy { coordinator, none };
    /// together: every group is one client, all on one host, which works on all of them in one turn. They hand over
    /// at once, and what is lost of one client's is lost of all: the host's segment has everybody's batches in it.
    enum class Turns { one_by_one, together };

    Groups groups;                   // the tours
    std::vector<std::string> hosts;  // one per group
    LostClient lost_client = LostClient::skip;
    Copy handover_copy = Copy::coordinator;
    Turns turns = Turns::one_by_one;
};

/// What a group's tour came to.
struct RelayResult {
    Handover segments;
    std::uint64_t examples = 0;        // of the clients that count
    std::vector<std::string> clients;  // in the tour's order
};

class Relay {
public:
    enum class Outcome { open, complete };

    explicit Relay(RelayPlan plan);

    /// A decision of an earlier process. Gives no turns by itself.
    void restore(const RelayDecision& decision);

    /// Turns to assign now, each given once: for every group whose client and host are there and which has no turn
    /// under way.
    [[nodiscard]] std::vector<RelayTurn> take_turns();
    /// Decisions made since the last call, in order: to be persisted before their turns are assigned.
    [[nodiscard]] std::vector<RelayDecision> take_decisions();

    /// The host and one other node hold both segments of this turn. Turns that are together are handed over one after
    /// another, with nothing in between.
    /// returns  false: an attempt that is not under way any more; nothing has changed
    bool handed_over(std::uint32_t group, std::uint32_t attempt, const Handover& segments, std::uint64_t examples);
    /// The node has a live session, or has none. Nodes are present until said otherwise.
    void present(const std::string& node);
    void lost(const std::string& node);
    /// Out of this round for good: its policy declined, its update was refused, its time is over.
    void skip(const std::string& client);
    /// The host does not come back in time; `next` takes its groups, of those that are together also the empty ones.
    void replace_host(const std::string& host, const std::string& next);

    /// Complete when every group's tour is at its end. A group all of whose clients were skipped gives no result.
    [[nodiscard]] Outcome outcome() const;
    /// Groups in which somebody counted, in the plan's order.
    [[nodiscard]] std::vector<RelayResult> results() const;
    /// Clients that count, over all groups.
    [[nodiscard]] std::size_t counted() const;
    /// Clients that count or still may.
    [[nodiscard]] std::size_t possible() const;
    /// The turn that a group is in, if one is under way.
    [[nodiscard]] const std::optional<RelayTurn>& turn(std::uint32_t group) const { return groups_.at(group).turn; }
    /// The group begins its round anew, and with it all that are together: its last server segment is lost after its
    /// tour's end.
    void restart(std::uint32_t group);
    /// Turns that are together and of which some are handed over: an earlier process did not live to log the others.
    /// They begin anew.
    void mend();
    /// Who is at work in the group, and after it whose turn it is next, at most `most` in all.
    [[nodiscard]] std::vector<std::string> coming(std::uint32_t group, std::size_t most) const;
    /// Clients of the tour that have not had their turn and still may, the one at work counted.
    [[nodiscard]] std::size_t left(std::uint32_t group) const;
    /// The group's last hand-over.
    [[nodiscard]] const Handover& last(std::uint32_t group) const { return groups_.at(group).so_far.segments; }
    /// The group's tour is at its end.
    [[nodiscard]] bool over(std::uint32_t group) const {
        return groups_.at(group).next >= groups_.at(group).tour.size();
    }
    /// What a group waits for: "client", "host", or "" when it does not wait.
    [[nodiscard]] std::string waits_for(std::uint32_t group) const;

private:
    struct Group {
        std::vector<std::string> tour;
        std::size_t next = 0;  // place in the tour, never that of a client that is skipped: apply() sees to it
        std::string host;
        std::uint32_t attempt = 0;
        std::optional<RelayTurn> turn;
        RelayResult so_far;
    };

    void decide(RelayDecision decision);
    void apply(const RelayDecision& decision);
    void end_turns(Group& group);
    [[nodiscard]] bool all_here() const;
    void advance(Group& group);
    [[nodiscard]] bool here(const std::string& node) const { return !absent_.contains(node); }

    RelayPlan::LostClient lost_client_;
    RelayPlan::Copy handover_copy_;
    RelayPlan::Turns turns_;
    std::vector<Group> groups_;
    std::set<std::string> skipped_;
    std::set<std::string> absent_;
    std::vector<RelayDecision> decisions_;
};

}  // namespace causeway
