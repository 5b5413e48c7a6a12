// One open round of whole models: its members, their leases, what they have brought, and whether it can close.
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

#include "coordinator/lease.h"
#include "coordinator/round.h"

namespace causeway {

class FederatedRound final : public Round {
public:
    FederatedRound(RoundPlan plan, Instant now);

    void restore(const SaveDecision& decision) override;

    void ready(Instant now, const std::string& node, SessionId session, const Digest& held,
               CoordinatorEffects& effects) override;
    using Round::lost;
    void lost(Instant now, const std::string& node, bool session_gone, Duration grace,
              CoordinatorEffects& effects) override;
    void expel(const std::string& node, const std::string& code, const std::string& message,
               CoordinatorEffects& effects) override;
    void on_offer(const std::string& node, SessionId session, const Offer& offer, CoordinatorEffects& effects) override;
    void on_progress(Instant now, const std::string& node, const Progress& progress) override;
    void on_decline(const std::string& node, const Decline& decline, CoordinatorEffects& effects) override;
    void on_absorbed(Instant now, const UpdateAbsorbed& absorbed, CoordinatorEffects& effects) override;
    void tick(Instant now, CoordinatorEffects& effects) override;

    [[nodiscard]] Outcome outcome() const override;
    [[nodiscard]] Instant deadline() const override;
    [[nodiscard]] bool has_member(const std::string& node) const override { return members_.contains(node); }
    [[nodiscard]] std::vector<std::pair<std::string, Digest>> participants() const override;
    [[nodiscard]] std::optional<Digest> counted(const std::string& node) const override;
    [[nodiscard]] double train_loss() const override;
    [[nodiscard]] std::uint32_t possible() const override;
    [[nodiscard]] std::string why_missing() const override;
    [[nodiscard]] std::string machine_fault() const override;
    [[nodiscard]] Json status(Instant now) const override;

private:
    /// What a member adds to the sums.
    struct Share {
        std::uint32_t live = 0;
        std::uint32_t undecided = 0;  // waited for and not over, or its update may be in the sum already
        std::uint32_t tried = 0;      // live, and not waited for
        std::uint32_t possible = 0;   // has counted or still may
        std::uint32_t faulty = 0;     // this machine cannot take its update
        std::int64_t weight = 0;
        Instant due = never;  // its own next deadline
    };
    struct Place {
        MemberLease lease;
        bool tried = false;                   // nobody waits for it
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

    Place* find(const std::string& node) {
        const auto found = members_.find(node);
        return found == members_.end() ? nullptr : &found->second;
    }
    /// After every change of a place: brings the sums up to date.
    void account(Place& place);
    [[nodiscard]] Lease lease_of(const Place& place) const;
    void send(const Place& place, Message message, CoordinatorEffects& effects) const;
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

    Instant closes_at_;                  // straggler deadline
    std::optional<Instant> stopped_at_;  // since when this machine's fault stops its clock
    std::map<std::string, Place> members_;
    Share sums_;                   // `due` unused
    std::multiset<Instant> dues_;  // of members that have one
};

}  // namespace causeway
