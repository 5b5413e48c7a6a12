// One experiment from submission to its end: waiting for members, the initial model, rounds, commits, evaluation.
//
//   queued -> starting -> running -> succeeded | failed | cancelled         (the last three absorb)
//                 \--------/  <-> paused: this machine failed (disk full), the same job is retried
//
// Inside starting and running it is always in one phase, and each phase has something that ends it: waiting (members
// come, or the start timeout), making (a job), open (round.h), finishing (a job), evaluating (a job).
// A commit names the round's participants and the next cohort in one transaction; nothing is sent before it is
// durable, because persists come before sends in one step's effects. Thread: loop. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/experiment.h"
#include "coordinator/client_evaluation.h"
#include "coordinator/effects.h"
#include "coordinator/membership.h"
#include "coordinator/recovered.h"
#include "coordinator/round.h"

namespace causeway {

/// What a step of an experiment works with.
struct Turn {
    Instant now;
    const Membership& members;
    const std::set<std::string>& busy;  // nodes that another experiment's open round has
    CoordinatorEffects& effects;
};

/// A committed round, as it is shown.
struct RoundRecord {
    std::uint32_t round = 0;
    Digest model;
    std::uint64_t model_bytes = 0;
    Json summary;  // clients, cohort, loss, seconds, bytes_up, bytes_down, update_norm
    std::optional<ModelEvaluated> evaluation;
    std::string evaluation_note{};  // why there is none
};

class ExperimentMachine {
public:
    struct Identity {
        std::uint64_t epoch = 0;
        std::function<std::string(const Digest&)> model_path;  // for the done event; pure
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
    void member_lost(Turn turn, const std::string& node, bool session_gone);
    /// It does not come back under that identity: dropped now, not after `rejoin`.
    void member_revoked(Turn turn, const std::string& node, const std::string& why);
    void on_message(Turn turn, const Member& member, const Message& message);
    void on_model_made(Turn turn, const ModelMade& made);
    void on_absorbed(Turn turn, const UpdateAbsorbed& absorbed);
    void on_snapshot(Turn turn, const SnapshotWritten& snapshot);
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
    /// Members of the open round.
    [[nodiscard]] std::vector<std::string> members_in_round() const;
    /// Published events in order: one per committed round once its evaluation is in, `done` last.
    [[nodiscard]] const std::vector<Json>& events() const { return events_; }
    [[nodiscard]] const std::vector<RoundRecord>& records() const { return records_; }
    [[nodiscard]] const Experiment& config() const { return config_; }
    /// The evaluated round with the best model by the experiment's metric, the earliest of equal ones; nullptr when
    /// none is evaluated.
    [[nodiscard]] const RoundRecord* best() const;
    /// One line of a list; `status` adds the open round's members.
    [[nodiscard]] Json summary() const;
    [[nodiscard]] Json status() const;

private:
    enum class Phase { queued, waiting, making, open, finishing, evaluating, over };
    struct Retry {
        Instant at = never;
        Duration pause{};
        std::optional<Job> job;
    };

    void restore(const RecoveredExperiment& recovered);
    void set_state(const std::string& state, const std::string& reason, CoordinatorEffects& effects);
    void wait_for_members(Turn turn);
    void look_for_members(Turn turn);
    void run_job(Job job, CoordinatorEffects& effects);
    void job_done();
    void pause(const std::string& reason);
    void go_on();
    [[nodiscard]] std::vector<std::string> eligible(const Turn& turn) const;
    [[nodiscard]] bool enough(std::size_t eligible) const;
    /// Sorted; empty when too few are there.
    [[nodiscard]] std::vector<std::string> draw_cohort(const Turn& turn, std::uint32_t round) const;
    void commit(Turn turn, const SnapshotWritten& snapshot);
    void after_commit(Turn turn, std::vector<std::string> next_cohort);
    void tell_committed(Turn turn) const;
    void open_round(Turn turn, std::vector<std::string> cohort, Duration first_wait);
    void assign_present(Turn turn);
    void check_round(Turn turn);
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
    [[nodiscard]] double metric_of(const ModelEvaluated& evaluation) const;
    void evaluation_settled(Turn turn, std::uint32_t round);
    [[nodiscard]] bool judged(std::uint32_t round) const;
    [[nodiscard]] bool out_of_patience() const;
    void stop_early(Turn turn);
    void publish();
    [[nodiscard]] Json round_event(const RoundRecord& record) const;
    [[nodiscard]] Json done_event() const;
    [[nodiscard]] std::uint32_t committed_rounds() const;

    Identity identity_;
    SaveExperiment saved_;
    Experiment config_;
    Assign assignment_;
    Phase phase_ = Phase::queued;
    std::optional<Round> round_;  // while open or finishing
    std::vector<RoundRecord> records_;
    std::map<std::string, std::pair<std::uint32_t, Digest>> last_counted_;
    std::set<std::string> lapsed_;             // dropped and not resynced: not drawn
    std::set<std::uint32_t> evaluations_due_;  // asked for, not answered
    std::set<std::uint32_t> evaluating_here_;  // of these, those that this machine computes
    std::map<std::uint32_t, ClientEvaluation> evaluating_at_clients_;
    std::map<std::uint32_t, ModelEvaluated> evaluated_here_;  // waits for the clients' part
    std::vector<Json> events_;
    std::uint32_t next_event_round_ = 1;
    Instant wait_until_ = never;
    Instant opened_at_{};
    Retry retry_;
    std::uint64_t bytes_up_seen_ = 0;  // socket totals at the last commit
    std::uint64_t bytes_down_seen_ = 0;
    // What a restart goes on with.
    std::vector<std::string> recovered_cohort_;
    std::vector<SaveDecision> recovered_decisions_;
};

}  // namespace causeway
