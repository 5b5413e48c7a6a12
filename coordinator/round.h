// One open round: its members, their leases, what they have brought, and whether it can close.
//
// A round closes when every member has reported (its update is in the sum, or was refused) or was dropped. It says so
// by outcome(); the experiment commits or fails. An update whose absorption is under way may already be in the sum, so
// a member is never dropped over it: the absorption is given up first, and its answer decides (CancelAbsorb).
// Nothing here depends on the order of arrival but the log. What is asked after every event (may it close, when is
// something due) is kept in sums over the members, so that an event costs the same in a cohort of ten thousand.
// Thread: loop. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/experiment.h"
#include "coordinator/effects.h"
#include "coordinator/lease.h"

namespace causeway {

/// What a round is opened with; all of it was persisted before.
struct RoundPlan {
    std::uint64_t epoch = 0;
    Assign assignment;  // as for every member: its lease names experiment and round, its model the start model
    std::vector<std::string> cohort;  // sorted
    CountOrShare quorum;
    Duration rejoin{};
    Duration first_wait{};          // for a member without a session at the opening
    Duration straggler_deadline{};  // 0: none
};

class Round {
public:
    enum class Outcome { open, complete, quorum_lost, zero_total_weight };

    Round(RoundPlan plan, Instant now);

    /// What an earlier process had decided: applied before any member is heard, sends nothing.
    void restore(const SaveDecision& decision);

    /// The member has a live session (again): it gets its next attempt, or hears what has become of it meanwhile.
    /// `held` is the update of this round that it says to hold, empty when none.
    void ready(Instant now, const std::string& node, SessionId session, const Digest& held,
               CoordinatorEffects& effects);
    /// Its session is silent or gone.
    void lost(Instant now, const std::string& node, bool session_gone, CoordinatorEffects& effects);
    /// Drops the member whatever its lease says. What is in the sum already counts: it was said by a member.
    void expel(const std::string& node, const std::string& code, const std::string& message,
               CoordinatorEffects& effects);
    void on_offer(const std::string& node, SessionId session, const Offer& offer, CoordinatorEffects& effects);
    void on_progress(Instant now, const std::string& node, const Progress& progress);
    void on_decline(const std::string& node, const Decline& decline, CoordinatorEffects& effects);
    void on_absorbed(Instant now, const UpdateAbsorbed& absorbed, CoordinatorEffects& effects);
    /// Expired leases, the straggler deadline, transfers to ask for again.
    void tick(Instant now, CoordinatorEffects& effects);

    [[nodiscard]] Outcome outcome() const;
    [[nodiscard]] Instant deadline() const;
    [[nodiscard]] std::uint32_t number() const { return plan_.assignment.lease.round; }
    [[nodiscard]] const RoundPlan& plan() const { return plan_; }
    [[nodiscard]] bool has_member(const std::string& node) const { return members_.contains(node); }
    /// Updates in the sum, sorted by node.
    [[nodiscard]] std::vector<std::pair<std::string, Digest>> participants() const;
    /// The update of this member that is in the sum, if one is.
    [[nodiscard]] std::optional<Digest> counted(const std::string& node) const;
    /// Weighted mean of what participants say of their training loss; NaN when none says one.
    [[nodiscard]] double train_loss() const;
    [[nodiscard]] std::uint32_t quorum() const;
    /// Members that have counted or still may.
    [[nodiscard]] std::uint32_t possible() const;
    /// "; NODE: code: why" of a member that does not count, for the reason of a lost quorum; empty: none.
    [[nodiscard]] std::string why_missing() const;
    /// "code: why" of this machine while it cannot take an update that a member has offered; empty: it can.
    [[nodiscard]] std::string machine_fault() const;
    /// Nodes that were dropped since the last call, with the code: drawn again only after they resync.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> take_dropped() {
        return std::exchange(newly_dropped_, {});
    }
    /// For `experiment status`: per member what it does, its attempt, step and steps.
    [[nodiscard]] Json status() const;

private:
    /// What a member adds to the sums.
    struct Share {
        std::uint32_t live = 0;
        std::uint32_t undecided = 0;  // not over, or its update may be in the sum already
        std::uint32_t possible = 0;   // has counted or still may
        std::uint32_t faulty = 0;     // this machine cannot take its update
        std::int64_t weight = 0;
        Instant due = never;  // its own next deadline
    };
    struct Place {
        MemberLease lease;
        SessionId session = 0;                // 0: none
        std::optional<HeldUpdate> offer;      // under the current attempt
        std::optional<HeldUpdate> absorbing;  // asked for and not answered
        std::optional<HeldUpdate> in_sum;
        std::optional<Refused> refusal;
        std::string drop_code;  // set when it is dropped, or will be once `absorbing` is answered
        std::string drop_message;
        std::uint32_t failed_transfers = 0;
        std::string machine_fault;  // the last pull failed by this machine: no fault of the member
        Instant retry_at = never;
        Progress progress;
        Instant assigned_at{};
        Instant progress_at = never;  // when the last step was heard of; never: none, or it is not training
        Duration longest_pause{};     // between two of them
        Share share;  // as it stands in the sums

        /// While it says nothing of further steps; `never` while nothing is due.
        [[nodiscard]] Instant hangs_at() const;
        [[nodiscard]] bool settled() const { return lease.state() == MemberLease::State::settled; }
        /// It works, and nothing about it is decided.
        [[nodiscard]] bool live() const { return !lease.over() && drop_code.empty(); }
    };

    Place* find(const std::string& node);
    /// After every change of a place: brings the sums up to date.
    void account(Place& place);
    [[nodiscard]] Lease lease_of(const Place& place) const;
    void send(const Place& place, Message message, CoordinatorEffects& effects) const;
    void log(const char* kind, Json detail, CoordinatorEffects& effects) const;
    void answer_over(const Place& place, const Digest& offered, CoordinatorEffects& effects) const;
    [[nodiscard]] std::optional<Refused> objection(const Place& place, const Offer& offer) const;
    void absorb(const std::string& node, Place& place, CoordinatorEffects& effects);
    void settle(const std::string& node, Place& place, const HeldUpdate& asked, const std::optional<Refused>& refusal,
                CoordinatorEffects& effects);
    void transfer_broke(Instant now, const std::string& node, Place& place, const Error& error,
                        CoordinatorEffects& effects);
    void keep_clock(Instant now);
    /// Now, or once the absorption under way is answered.
    void drop(const std::string& node, Place& place, std::string code, std::string message,
              CoordinatorEffects& effects);

    RoundPlan plan_;
    Instant closes_at_;                  // straggler deadline
    std::optional<Instant> stopped_at_;  // since when this machine's fault stops its clock
    std::map<std::string, Place> members_;
    Share sums_;                   // `due` unused
    std::multiset<Instant> dues_;  // of members that have one
    std::vector<std::pair<std::string, std::string>> newly_dropped_;
};

}  // namespace causeway
