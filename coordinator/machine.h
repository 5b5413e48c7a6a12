// The coordinator as one pure state machine: what happened goes in, what to do comes out. Start reading here.
//
// It owns the membership, the experiments and the watches of operators, and decides which experiment runs. The daemon
// and the simulator feed it events and execute its effects under the order contract of coordinator/effects.h.
// Thread: loop. No clock, socket, file, thread or random device inside.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "configs/initial_model.h"
#include "coordinator/experiment_machine.h"
#include "coordinator/limits.h"
#include "coordinator/membership.h"
#include "coordinator/operator_requests.h"
#include "coordinator/recovered.h"
#include "coordinator/rosters.h"

namespace causeway {

struct CoordinatorOptions {
    std::string federation;
    std::size_t max_sessions = limits::sessions;
    std::string sessions_bound;  // what keeps them from being more, and what raises it: for who is refused
    std::string sessions_raised_by;
    std::uint32_t parallel = 1;  // experiments that run at the same time, at least 1
    /// Where a model with this digest lies, for `done` events. Pure; may be empty.
    std::function<std::string(const Digest&)> model_path;
    NamedModels models;  // what experiments may start from
    std::string build;   // of this engine, as nodes name theirs; a running experiment is pinned to it, empty: not
};

class Coordinator {
public:
    Coordinator(CoordinatorOptions options, Recovered recovered);

    /// Once, before any step: running experiments go on from where the store says they were.
    [[nodiscard]] CoordinatorEffects start(Instant now);
    /// cost  O(sessions + members of open rounds)
    [[nodiscard]] CoordinatorEffects step(Instant now, const CoordinatorEvent& event);

    [[nodiscard]] const Membership& members() const { return members_; }
    [[nodiscard]] const Experiments& experiments() const { return experiments_; }

private:
    void recover(const RecoveredExperiment& recovered);
    [[nodiscard]] ExperimentMachine::Identity identity_of(const SaveExperiment& saved) const;
    [[nodiscard]] std::vector<std::uint64_t> ancestors_of(const SaveExperiment& saved) const;
    void on(Instant now, const SessionOpened& event, CoordinatorEffects& effects);
    void on(Instant now, const SessionClosed& event, CoordinatorEffects& effects);
    void on(Instant now, const SessionSilent& event, CoordinatorEffects& effects);
    void on(Instant now, const SessionHeard& event, CoordinatorEffects& effects);
    void on(Instant now, const MessageReceived& event, CoordinatorEffects& effects);
    void on(Instant now, const NodeRevoked& event, CoordinatorEffects& effects);
    void on(Instant now, const Tick& event, CoordinatorEffects& effects);
    void on(Instant now, const StoodStill& event, CoordinatorEffects& effects);
    void on(Instant now, const ModelMade& event, CoordinatorEffects& effects);
    void on(Instant now, const RoundOpened& event, CoordinatorEffects& effects);
    void on(Instant now, const UpdateAbsorbed& event, CoordinatorEffects& effects);
    void on(Instant now, const SnapshotWritten& event, CoordinatorEffects& effects);
    void on(Instant now, const CommitStored& event, CoordinatorEffects& effects);
    void on(Instant now, const ModelEvaluated& event, CoordinatorEffects& effects);
    void on(Instant now, const JobFailed& event, CoordinatorEffects& effects);
    void on(Instant, const RoundsRead& event, CoordinatorEffects& effects);
    void on(Instant, const LinkMeasured& event, CoordinatorEffects&) { measurements_.note(event); }
    void measure(const Member& member, const Offer& offer);
    [[nodiscard]] Json measured() const;

    /// Runs what is due, lets queued experiments start, tells watchers, and says when to wake.
    void finish(Instant now, CoordinatorEffects& effects);
    void start_queued(Instant now, CoordinatorEffects& effects);
    [[nodiscard]] std::vector<ExperimentId> in_turn() const;
    [[nodiscard]] std::vector<ExperimentId> queue() const;
    void answer_known(const Member& member, const std::vector<std::uint64_t>& known, CoordinatorEffects& effects) const;
    void member_ready(Instant now, const Member& member, const std::vector<HeldUpdate>& held,
                      CoordinatorEffects& effects);
    void host_ready(Instant now, const Member& member, CoordinatorEffects& effects);
    void member_lost(Instant now, const std::string& node, bool session_gone, CoordinatorEffects& effects);
    void on_request(Instant now, const Member& member, SessionId session, const Request& request,
                    CoordinatorEffects& effects);
    Result<Json> answer(Instant now, const Member& member, const Request& request, const Json& body,
                        CoordinatorEffects& effects);
    Result<Json> submit(const Member& member, const Json& body, CoordinatorEffects& effects);
    Result<Json> resume(const Member& member, const Json& body, CoordinatorEffects& effects);
    Result<Json> enqueue(SaveExperiment saved, Experiment config, CoordinatorEffects& effects);
    Result<Json> cancel(Instant now, const Member& member, const Json& body, CoordinatorEffects& effects);
    [[nodiscard]] ExperimentMachine* find(ExperimentId id);
    [[nodiscard]] Busy busy_for(ExperimentId id) const;
    [[nodiscard]] std::size_t active_count() const;

    CoordinatorOptions options_;
    std::uint64_t epoch_;
    Membership members_;
    Experiments experiments_;
    std::set<ExperimentId> unfinished_;  // queued or active: the many that are over cost nothing
    ExperimentId last_experiment_ = 0;
    Measurements measurements_;
    Watches watches_;
    Rosters rosters_;
    std::map<ExperimentId, std::string> unusable_;  // recovered, but this build cannot go on with them: why
};

}  // namespace causeway
