// An open round as its experiment sees it, whatever its members do: whole models (federated_round.h), or turns of
// relays (relay_round.h).
//
// The experiment opens it, passes on what members do, asks for the outcome after each event, and commits or fails. A
// round closes in every case: by reports, drops or a deadline. Thread: loop. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/experiment.h"
#include "coordinator/effects.h"

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
    std::set<std::string> tried{};  // of the cohort: counts if it comes, and nobody waits for it
};

/// Two nodes that may exchange streams: now, or as soon as their turn comes.
struct StreamPair {
    std::string client;
    std::string host;
    bool operator==(const StreamPair&) const = default;
};

class Round {
public:
    enum class Outcome { open, complete, quorum_lost, zero_total_weight, no_host };

    explicit Round(RoundPlan plan) : plan_(std::move(plan)) {}
    virtual ~Round() = default;
    Round(Round&&) = default;
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

    /// What an earlier process had decided: applied before any member is heard, sends nothing.
    virtual void restore(const SaveDecision& decision) = 0;
    /// The answer to OpenRound, where there is one.
    virtual void opened(Instant /*now*/, const RoundOpened& /*opened*/, CoordinatorEffects& /*effects*/) {}

    /// The member has a live session (again): it gets its next attempt, or hears what has become of it meanwhile.
    /// `held` is the update of this round that it says to hold, empty when none.
    virtual void ready(Instant now, const std::string& node, SessionId session, const Digest& held,
                       CoordinatorEffects& effects) = 0;
    /// A host is there; not for rounds without hosts.
    virtual void host_ready(Instant /*now*/, const std::string& /*node*/, SessionId /*session*/,
                            CoordinatorEffects& /*effects*/) {}
    /// Its session is silent or gone. Its place is kept for `grace` at least, whatever the plan says.
    virtual void lost(Instant now, const std::string& node, bool session_gone, Duration grace,
                      CoordinatorEffects& effects) = 0;
    void lost(Instant now, const std::string& node, bool session_gone, CoordinatorEffects& effects) {
        lost(now, node, session_gone, Duration::zero(), effects);
    }
    /// Drops the member whatever its lease says. What is in the sum already counts: it was said by a member.
    virtual void expel(const std::string& node, const std::string& code, const std::string& message,
                       CoordinatorEffects& effects) = 0;
    virtual void on_offer(const std::string& node, SessionId session, const Offer& offer,
                          CoordinatorEffects& effects) = 0;
    virtual void on_progress(Instant now, const std::string& node, const Progress& progress) = 0;
    virtual void on_decline(const std::string& node, const Decline& decline, CoordinatorEffects& effects) = 0;
    virtual void on_absorbed(Instant now, const UpdateAbsorbed& absorbed, CoordinatorEffects& effects) = 0;
    /// Expired leases, the straggler deadline, transfers to ask for again.
    virtual void tick(Instant now, CoordinatorEffects& effects) = 0;

    [[nodiscard]] virtual Outcome outcome() const = 0;
    [[nodiscard]] virtual Instant deadline() const = 0;
    [[nodiscard]] virtual bool has_member(const std::string& node) const = 0;
    /// Updates that count, sorted by node.
    [[nodiscard]] virtual std::vector<std::pair<std::string, Digest>> participants() const = 0;
    /// The update of this member that counts, if one does.
    [[nodiscard]] virtual std::optional<Digest> counted(const std::string& node) const = 0;
    /// Weighted mean of what participants say of their training loss; NaN when none says one.
    [[nodiscard]] virtual double train_loss() const = 0;
    /// Members that have counted or still may.
    [[nodiscard]] virtual std::uint32_t possible() const = 0;
    /// "; NODE: code: why" of a member that does not count, for the reason of a lost quorum; empty: none.
    [[nodiscard]] virtual std::string why_missing() const = 0;
    /// "code: why" of this machine while it cannot take what a member has offered; empty: it can.
    [[nodiscard]] virtual std::string machine_fault() const = 0;
    /// For `experiment status`: per member what it does, its attempt, step and steps; of one that is away why, and for
    /// how many seconds more it is waited for (waits_s; null: for ever), and by which setting (waits_by).
    [[nodiscard]] virtual Json status(Instant now) const = 0;
    /// What its commit says of it beside what every round's does, under "relays"; null: nothing.
    [[nodiscard]] virtual Json relays() const { return {}; }
    /// The job that ends a complete round.
    [[nodiscard]] virtual FinishRound finish() const { return {plan_.assignment.lease.experiment, number()}; }
    [[nodiscard]] virtual std::vector<StreamPair> streams() const { return {}; }
    [[nodiscard]] virtual std::vector<std::string> hosts() const { return {}; }
    /// The host of each group; empty: no groups.
    [[nodiscard]] virtual std::vector<std::string> host_of_group() const { return {}; }

    [[nodiscard]] std::uint32_t number() const { return plan_.assignment.lease.round; }
    [[nodiscard]] const RoundPlan& plan() const { return plan_; }
    [[nodiscard]] std::uint32_t quorum() const {
        return plan_.quorum.of(static_cast<std::uint32_t>(plan_.cohort.size() - plan_.tried.size()));
    }
    /// Nodes that were dropped since the last call, with the code: drawn again only after they resync.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> take_dropped() {
        return std::exchange(newly_dropped_, {});
    }

protected:
    /// Why a member that is not heard of counts no longer: its session has ended, or it says nothing in it.
    static const char* absence(SessionId session) { return session == 0 ? "gone" : "silent"; }
    static constexpr const char* away_too_long = "away for longer than sync.rejoin";
    /// Of a member that may come back until `rejoin` is over or the round closes.
    static void add_wait(Json& row, Instant now, SessionId session, Instant rejoin, Instant closes) {
        const auto until = std::min(rejoin, closes);
        const Json left = until == never ? Json() : Json(seconds(std::max(until - now, Duration::zero())));
        row.set("reason", absence(session)).set("waits_s", left);
        row.set("waits_by", rejoin <= closes ? "sync.rejoin" : "sync.straggler_deadline");
    }
    void note_dropped(const std::string& node, const std::string& code) { newly_dropped_.emplace_back(node, code); }
    void log(const char* kind, Json detail, CoordinatorEffects& effects) const {
        effects.persist.push_back(SaveDecision{plan_.assignment.lease.experiment, number(), kind, std::move(detail)});
    }

    RoundPlan plan_;

private:
    std::vector<std::pair<std::string, std::string>> newly_dropped_;
};

}  // namespace causeway
