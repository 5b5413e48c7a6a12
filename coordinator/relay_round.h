// One open round of relays: in each group one client after another trains its segment of the model with the group's
// host.
//
// split/relay.h decides whose turn it is and what a loss means; this machine knows sessions, leases and deadlines, and
// brings both segments of each turn here before the turn counts. Every turn has a number of its own, which is the
// attempt of its lease: what is said under another number changes nothing. What a turn had begun when its client, its
// host, their connection or this process was lost is begun again from the last hand-over, which is in the decision log.
// Thread: loop. Pure.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/relay_texts.h"
#include "coordinator/round.h"

namespace causeway {

struct RelayRoundPlan {
    RoundPlan round;
    RelayPlan relay;
    CellTexts client;
    CellTexts host;
    RelayTexts::Loss loss = RelayTexts::Loss::at_host;
    std::map<std::string, std::uint64_t> examples;  // of each client, as it declared them when groups were made
    Duration host_wait{};                           // for a host when none is left; 0: for ever
};

class RelayRound final : public Round {
public:
    RelayRound(RelayRoundPlan plan, Instant now);

    void restore(const SaveDecision& decision) override;
    void opened(Instant now, const RoundOpened& opened, CoordinatorEffects& effects) override;
    void ready(Instant now, const std::string& node, SessionId session, const Digest& held,
               CoordinatorEffects& effects) override;
    void host_ready(Instant now, const std::string& node, SessionId session, CoordinatorEffects& effects) override;
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
    [[nodiscard]] bool has_member(const std::string& node) const override { return clients_.contains(node); }
    [[nodiscard]] std::vector<std::pair<std::string, Digest>> participants() const override;
    [[nodiscard]] std::optional<Digest> counted(const std::string& node) const override;
    [[nodiscard]] double train_loss() const override;
    [[nodiscard]] std::uint32_t possible() const override;
    [[nodiscard]] std::string why_missing() const override;
    [[nodiscard]] std::string machine_fault() const override { return machine_fault_; }
    [[nodiscard]] Json status(Instant now) const override;
    [[nodiscard]] Json relays() const override;
    [[nodiscard]] FinishRound finish() const override;
    [[nodiscard]] std::vector<StreamPair> streams() const override;
    [[nodiscard]] std::vector<std::string> hosts() const override;
    [[nodiscard]] std::vector<std::string> host_of_group() const override { return host_of_group_; }

private:
    /// A segment that one side of a turn has offered.
    struct Part {
        std::optional<HeldUpdate> offer;
        SessionId session = 0;
        bool here = false;
        Instant retry_at = never;
    };
    /// A client's side of a turn.
    struct Seat {
        RelayTurn turn;
        Part part;
        Progress progress;
    };
    /// One client with its host, or all clients that are together with theirs, in the order of their names.
    struct Turn {
        std::vector<Seat> seats;
        Part host;
        std::uint32_t failed_transfers = 0;
        std::uint32_t step = 0;  // the most that anybody has told
        Instant moved_at{};
        Duration longest_pause{};
    };
    /// A host's last segment of a group, asked for after the tour's end (`handover_copy = "none"`).
    struct Collection {
        std::uint32_t group = 0;
        HeldUpdate segment;
        Instant retry_at = never;
    };
    struct Node {
        SessionId session = 0;        // 0: none
        bool away = true;             // has no session, or is silent in it
        Instant gone_until = never;   // when its time to come back is over
        std::string drop_code{};      // a client's that is out of the round
        std::string drop_message{};
        std::uint32_t broken = 0;     // turns of it that broke off for want of a connection
    };
    struct Counted {
        Digest segment;
        double loss = 0;
        std::uint64_t examples = 0;
        std::uint64_t stream_up = 0;  // bytes that its client sent its host in the turn,
        std::uint64_t stream_down = 0;  // and got back
    };
    static const std::string& host_of(const Turn& turn) { return turn.seats.front().turn.host; }
    /// The client's; nullptr: it is not one of this turn's.
    static const Seat* seat_of(const Turn& turn, const std::string& name);
    static Seat* seat_of(Turn& turn, const std::string& name);
    static bool involves(const Turn& turn, const std::string& name);
    static bool in_group(const Turn& turn, std::uint32_t group);
    /// nullptr: no side of this node.
    static Part* part_of(Turn& turn, const std::string& name);
    static bool all(const Turn& turn, bool (*holds)(const Part& part));

    void begin(std::vector<RelayTurn> turns, Instant now, CoordinatorEffects& effects);
    void go_on(Instant now, CoordinatorEffects& effects);
    void log_decisions(CoordinatorEffects& effects);
    [[nodiscard]] Assign assign_for(std::uint32_t number, const Turn& turn, const std::string& node) const;
    [[nodiscard]] std::uint64_t examples_of(const std::string& client) const;
    void absorb(std::uint32_t number, Turn& turn, const std::string& node, CoordinatorEffects& effects);
    void hand_over(std::uint32_t number, CoordinatorEffects& effects);
    [[nodiscard]] bool copies(std::uint32_t group) const;
    [[nodiscard]] bool uncopied(std::uint32_t group) const;
    void collect(CoordinatorEffects& effects);
    void ask_for(std::uint32_t number, Collection& collection, CoordinatorEffects& effects);
    void collected(std::uint32_t number, const UpdateAbsorbed& absorbed);
    void transfer_broke(Instant now, std::uint32_t number, Turn& turn, const std::string& node, const Error& error,
                        CoordinatorEffects& effects);
    /// The turn begins anew; after too many breaks the client that they are about is left out. In a turn of several
    /// clients a node that is none of them is the host, which is then given up.
    void break_off(std::uint32_t number, const std::string& about, const std::string& code, const std::string& message,
                   CoordinatorEffects& effects);
    void give_up_host(const std::string& host, const std::string& why);
    void hangs(std::uint32_t number, Instant now, CoordinatorEffects& effects);
    void leave(const std::string& client, const std::string& code, const std::string& message,
               CoordinatorEffects& effects);
    void move_groups();
    void mark_lost(const std::string& node);
    [[nodiscard]] Instant until_gone(const std::string& node, Duration grace) const;
    void note(const RelayDecision& decision);
    [[nodiscard]] Lease lease_of(std::uint32_t number) const;
    [[nodiscard]] Turn* find(const Lease& lease);
    [[nodiscard]] bool together() const { return of_relays_.relay.turns == RelayPlan::Turns::together; }
    [[nodiscard]] Instant hangs_at(const Turn& turn) const;
    void send(const std::string& node, Message message, CoordinatorEffects& effects) const;
    [[nodiscard]] Node* node_of(const std::string& name);

    RelayRoundPlan of_relays_;
    Relay relay_;
    std::vector<std::string> host_of_group_;
    Instant closes_at_;
    Instant first_wait_;  // until then a node may come that is not there at the opening
    Instant now_;         // of the latest event
    bool opened_ = false;
    std::array<std::pair<Digest, std::uint64_t>, 2> start_{};  // client's and host's segment
    std::map<Digest, std::uint64_t> sizes_;
    std::map<std::string, Node> clients_;
    std::map<std::string, Node> hosts_;
    std::set<std::string> given_up_;  // hosts that did not come back in time
    std::optional<Instant> hostless_since_;
    std::map<std::uint32_t, Turn> turns_;  // under way, by number
    std::map<std::string, Counted> counted_;  // by client, of its hand-over
    std::uint32_t last_group_ = 0;            // of the latest hand-over
    std::set<Digest> copied_;                             // host's segments that are here
    std::map<std::uint32_t, Collection> collections_;     // under way, by number
    std::uint32_t next_number_ = 1;
    std::string machine_fault_;
    std::string host_refusal_;  // why the last host that declined did
    bool no_host_ = false;
};

}  // namespace causeway
