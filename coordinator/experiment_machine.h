// One experiment from submission to its end: waiting for members, the initial model, rounds, commits, evaluation.
//
//   queued -> starting -> running -> succeeded | failed | cancelled         (the last three absorb)
//                 \--------/  <-> paused: this machine failed (disk full), the same job is retried
//
// Inside starting and running it is always in one phase, and each phase has something that ends it: waiting (members
// come, or the start timeout), making (a job), open (round.h), finishing (a job), evaluating (a job). An experiment
// that another build of the engine began is `pinned`: paused until that build runs again, or until it is cancelled.
// A commit names the round's participants and the next cohort in one transaction; nothing is sent before it is
// durable, because persists come before sends in one step's effects. Thread: loop. Pure.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/experiment.h"
#include "coordinator/client_evaluation.h"
#include "coordinator/effects.h"
#include "coordinator/latecomers.h"
#include "coordinator/membership.h"
#include "coordinator/recovered.h"
#include "coordinator/relay_texts.h"
#include "coordinator/round.h"
#include "coordinator/round_clock.h"
#include "coordinator/round_history.h"

namespace causeway {

/// What other experiments have of the nodes (machine_queue.cpp).
struct Busy {
    std::set<std::string> nodes{};                      // theirs, or theirs first
    std::map<std::string, std::uint64_t> host_bytes{};  // what their groups take at hosts
};

/// What a step of an experiment works with.
struct Turn {
    Instant now;
    const Membership& members;
    const Busy& busy;
    CoordinatorEffects& effects;
};

/// Who trains after whom, and on which host: one host per group.
struct RelayGroups {
    Groups groups;
    std::vector<std::string> hosts;
    std::map<std::string, std::uint64_t> examples{};  // of each client, as declared
};

class ExperimentMachine {
public:
    struct Identity {
        std::uint64_t epoch = 0;
        std::function<std::string(const Digest&)> model_path;  // for the done event; pure
        std::string build{};                                   // of this engine; empty: nothing is pinned
        /// The commit that a resumed experiment goes on from, and its parent's best model.
        std::optional<RoundRecord> origin{};
        std::optional<RoundRecord> best_before{};
    };

    ExperimentMachine(Identity identity, SaveExperiment saved, Experiment config, Assign assignment);
    /// From the store. Call resume() once before any other step.
    ExperimentMachine(Identity identity, const RecoveredExperiment& recovered, Experiment config, Assign assignment);

    void submit(CoordinatorEffects& effects);
    /// Leaves the queue.
    void start(Turn turn);
    void resume(Turn turn);
    void cancel(Turn turn, const std::string& who);
    void fail(Turn turn, const std::string& reason);

    /// A client came (back) or went; `held` are the updates of this experiment that its Hello names.
    void member_ready(Turn turn, const Member& member, const std::vector<HeldUpdate>& held);
    void host_ready(Turn turn, const Member& member);
    void member_lost(Turn turn, const std::string& node, bool session_gone);
    /// It was lost because this process stood still, and has not come back in time.
    void member_given_up(Turn turn, const std::string& node);
    /// It does not come back under that identity: dropped now, not after `rejoin`.
    void member_revoked(Turn turn, const std::string& node, const std::string& why);
    /// It is over: says so to a session.
    void answer_over(const Turn& turn, SessionId session) const;
    void on_message(Turn turn, const Member& member, const Message& message);
    void on_model_made(Turn turn, const ModelMade& made);
    void on_round_opened(Turn turn, const RoundOpened& opened);
    void on_absorbed(Turn turn, const UpdateAbsorbed& absorbed);
    void on_snapshot(Turn turn, const SnapshotWritten& snapshot);
    void on_commit_stored(Turn turn, const CommitStored& stored);
    void on_evaluated(Turn turn, const ModelEvaluated& evaluated);
    /// A client's answer about a round that it was asked to evaluate.
    void on_client_evaluated(Turn turn, const std::string& node, const Reply& reply);
    void on_job_failed(Turn turn, const JobFailed& failed);
    void tick(Turn turn);

    [[nodiscard]] Instant deadline() const;
    [[nodiscard]] const SaveExperiment& saved() const { return saved_; }
    [[nodiscard]] ExperimentId id() const { return saved_.experiment; }
    [[nodiscard]] bool queued() const { return saved_.state == "queued"; }
    [[nodiscard]] bool over() const;
    [[nodiscard]] bool active() const { return !queued() && !over(); }
    [[nodiscard]] bool pinned() const { return phase_ == Phase::pinned; }
    /// Has members to find, since when: it is served before one that has just had its round.
    [[nodiscard]] bool waiting() const { return phase_ == Phase::waiting || phase_ == Phase::making; }
    [[nodiscard]] Instant waiting_since() const { return waiting_since_; }
    [[nodiscard]] std::uint32_t priority() const { return config_.experiment.priority; }
    /// Those it would choose from, if they are enough; else none.
    [[nodiscard]] std::vector<std::string> usable(const Turn& turn) const;
    /// Members of the open round.
    [[nodiscard]] std::vector<std::string> members_in_round() const;
    /// Nodes that may exchange streams in the open round.
    [[nodiscard]] std::vector<StreamPair> streams() const;
    /// What its groups take at their hosts, in bytes by the host's name.
    [[nodiscard]] std::map<std::string, std::uint64_t> host_bytes() const;
    /// Published events in order: what a round of statistics has come to, one per committed round once its evaluation
    /// is in, `done` last.
    [[nodiscard]] std::size_t event_count() const;
    /// nullopt: of a round that is only in the store; its event is event_of() what was read there.
    [[nodiscard]] std::optional<Json> event(std::size_t index) const;
    [[nodiscard]] Json event_of(const RoundRecord& record) const;
    /// The round of the first event; events are of rounds without gaps.
    [[nodiscard]] std::uint32_t first_event_round() const {
        return records_.empty() ? 1 : records_.front().round + (summed_columns() ? 0 : 1);
    }
    /// Committed rounds, from the initial model's or the parent's.
    [[nodiscard]] const RoundHistory& records() const { return records_; }
    /// It is over and everybody who followed it has heard so: what is asked from now on comes from the store.
    void close() { records_.close(); }
    [[nodiscard]] const Experiment& config() const { return config_; }
    [[nodiscard]] const Assign& assignment() const { return assignment_; }
    /// That a member of that role trains: "[0, 3)"; empty: all.
    [[nodiscard]] std::string layers_of(const std::string& role) const {
        return !relays_ ? "" : role == "host" ? relays_->host.segment : relays_->client.segment;
    }
    /// The evaluated round with the best model by the experiment's metric, the earliest of equal ones; nullptr when
    /// none is evaluated.
    [[nodiscard]] const RoundRecord* best() const { return records_.best(config_.evaluation.metric); }
    /// One line of a list; `status` adds the open round's members, and how long those that are away are waited for.
    [[nodiscard]] Json summary() const;
    [[nodiscard]] Json status(Instant now) const;

private:
    enum class Phase { queued, waiting, making, open, finishing, evaluating, over, pinned };
    struct Retry {
        Instant at = never;
        Duration pause{};
        std::optional<Job> job;
    };

    void restore(const RecoveredExperiment& recovered);
    void set_state(const std::string& state, const std::string& reason, CoordinatorEffects& effects);
    void wait_for_members(Turn turn);
    void look_for_members(Turn turn);
    void count_start_timeout(Instant now);
    void ready_in_round(Turn turn, const Member& member, const Digest& held);
    void run_job(Job job, CoordinatorEffects& effects);
    void job_done(CoordinatorEffects& effects);
    void pause(const std::string& reason, CoordinatorEffects& effects);
    void go_on(CoordinatorEffects& effects);
    [[nodiscard]] std::vector<std::string> eligible(const Turn& turn) const;
    [[nodiscard]] bool enough(std::size_t eligible) const;
    [[nodiscard]] static Duration grace_of(const Turn& turn);
    /// Some that this process lost while it stood still may come back: nothing is drawn without them.
    [[nodiscard]] bool expects_members(const Turn& turn) const {
        return turn.members.expects_any(config_.data.dataset, relays_.has_value());
    }
    /// Sorted; empty when too few are there. What the draw rests on goes into `log`: it is persisted with the cohort.
    [[nodiscard]] std::vector<std::string> draw_cohort(const Turn& turn, std::uint32_t round,
                                                       std::vector<Persist>& log);
    [[nodiscard]] bool of_this_build(const Member& member) const;
    [[nodiscard]] bool can_do_without(const std::vector<std::string>& punctual) const;
    void log_selection(const Turn& turn, std::uint32_t round, const std::vector<std::string>& cohort,
                       std::vector<Persist>& log) const;
    void log_compute(const Turn& turn, std::uint32_t round, const std::vector<std::string>& cohort,
                     std::vector<Persist>& log);
    void commit(Turn turn, const SnapshotWritten& snapshot);
    void after_commit(Turn turn, std::vector<std::string> next_cohort);
    void tell_committed(Turn turn) const;
    void open_round(Turn turn, std::vector<std::string> cohort, Duration first_wait);
    void open_relays(Turn turn, RoundPlan plan);
    /// The job that opens the open round, again.
    [[nodiscard]] OpenRound opening() const;
    /// The clients' sums are still to be asked for: round 0 is open, or comes first.
    [[nodiscard]] bool before_statistics() const;
    void gather_statistics(Turn turn);
    void commit_statistics(Turn turn, const SnapshotWritten& snapshot);
    /// Bytes at the sockets so far: what comes is of the next round.
    void note_traffic(std::uint64_t up, std::uint64_t down);
    [[nodiscard]] RelayGroups groups_for(const Turn& turn, const std::vector<std::string>& cohort,
                                         std::uint32_t round);
    void add_labels(const Turn& turn, GroupingInput& input, Json& detail) const;
    [[nodiscard]] std::vector<std::string> live_hosts(const Turn& turn) const;
    /// A host for each group, in turn among those that have room. Groups for which nobody has are left without: "".
    [[nodiscard]] std::vector<std::string> hosts_for(const Turn& turn, std::size_t all_groups) const;
    /// The examples of a batch at a host, at most.
    [[nodiscard]] std::uint64_t rows_at_host(const Turn& turn) const;
    [[nodiscard]] std::string why_no_room(const Turn& turn, std::size_t groups) const;
    [[nodiscard]] bool look_for_hosts(Turn turn);
    void assign_present(Turn turn);
    void check_round(Turn turn);
    void hears_drop(Turn turn, const std::string& node);
    void answer_held(Turn turn, const Member& member, const HeldUpdate& held) const;
    void end(Turn turn, const std::string& state, const std::string& reason);
    [[nodiscard]] bool evaluation_due(std::uint32_t round) const;
    void evaluate_last(Turn turn);
    void ask_clients(Turn turn, const RoundRecord& record);
    [[nodiscard]] Request evaluation_request_for(const RoundRecord& record, std::size_t clients) const;
    void ask_to_evaluate(Turn turn, const Member& member) const;
    void leave_out_of_evaluations(Turn turn, const std::string& node, const std::string& why);
    void settle_client_evaluations(Turn turn);
    void settle_evaluation(Turn turn, std::uint32_t round);
    [[nodiscard]] Instant evaluations_deadline() const;
    /// The figure that evaluation.metric names; NaN: not measured.
    [[nodiscard]] double metric_of(const ModelEvaluated& evaluation) const {
        return figure_of(evaluation, config_.evaluation.metric);
    }
    void evaluation_settled(Turn turn, std::uint32_t round);
    [[nodiscard]] bool judged(std::uint32_t round) const;
    [[nodiscard]] bool out_of_patience() const;
    void stop_early(Turn turn);
    void publish();
    bool leaves_out_evaluation(Turn turn, RoundRecord record);
    void persist_evaluation(const RoundRecord& record, CoordinatorEffects& effects) const;
    [[nodiscard]] Json round_event(const RoundRecord& record) const;
    [[nodiscard]] Json statistics_event(const RoundRecord& record) const;
    [[nodiscard]] Json done_event() const;
    [[nodiscard]] bool summed_columns() const;
    [[nodiscard]] std::uint32_t committed_rounds() const;

    Identity identity_;
    SaveExperiment saved_;
    Experiment config_;
    Assign assignment_;
    Phase phase_ = Phase::queued;
    std::optional<RelayTexts> relays_;           // of regimes that have them
    std::unique_ptr<Round> round_;               // while open or finishing
    RelayGroups groups_;                         // of the last round of relays
    std::uint64_t group_bytes_ = 0;              // that each of them takes at its host
    std::map<std::string, double> turn_seconds_;  // of each client, its last turn
    RoundHistory records_;
    std::map<std::string, std::pair<std::uint32_t, Digest>> last_counted_;
    Latecomers latecomers_;
    std::map<std::string, std::string> lapsed_;  // dropped (code) and not resynced: not drawn
    std::set<std::uint32_t> evaluations_due_;  // asked for, not answered
    std::set<std::uint32_t> evaluating_here_;  // of these, those that this machine computes
    std::map<std::uint32_t, ClientEvaluation> evaluating_at_clients_;
    std::map<std::uint32_t, ModelEvaluated> evaluated_here_;  // waits for the clients' part
    std::map<std::uint32_t, std::string> not_evaluated_here_;  // why; waits for it as well
    std::uint32_t published_ = 0;  // the last round with an event
    std::map<std::string, std::uint32_t> last_drawn_;    // of each node the last round that it was drawn for
    std::map<std::string, std::string> compute_logged_;  // of each node that was drawn
    Instant wait_until_ = never;
    Instant waiting_since_{};
    RoundClock clock_;
    Json last_times_;  // of the last commit, for status
    Retry retry_;
    std::uint64_t bytes_up_seen_ = 0;  // socket totals when the open round's bytes began
    std::uint64_t bytes_down_seen_ = 0;
    // What a restart goes on with.
    std::vector<std::string> recovered_cohort_;
    std::vector<SaveDecision> recovered_decisions_;
    std::map<std::uint32_t, Digest> redo_;  // rounds that are done again, and what they came to before
};

}  // namespace causeway
