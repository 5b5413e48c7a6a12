// Does the coordinator's jobs on threads of its own and answers each with an event: sums, snapshots, evaluation.
//
// Three kinds of threads. The *sums* thread owns the rounds' sums and the snapshot folder; *checkers* decode and judge
// updates, any number of them, since sums do not depend on the order; the *trainer* thread makes first models and
// evaluates. The loop thread calls; nothing here waits on it.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/published.h"
#include "common/work_thread.h"
#include "coordinator/daemon_limits.h"
#include "coordinator/effects.h"
#include "coordinator/experiment_work.h"
#include "coordinator/segments.h"
#include "coordinator/snapshots.h"
#include "coordinator/traffic_shares.h"
#include "wire/transfer_engine.h"

namespace causeway {

struct JobRunnerOptions {
    std::filesystem::path state;                            // STATE
    std::map<std::string, std::filesystem::path> datasets;  // by name: the held-out examples
    std::map<std::string, std::filesystem::path> models;    // by name: files that experiments may start from
    std::uint32_t checkers = 2;
    std::function<void(CoordinatorEvent)> answer;  // called from any of its threads
    std::function<SocketTotals()> traffic;         // since the start
    std::shared_ptr<DaemonLimits> limits = std::make_shared<DaemonLimits>();
};

class JobRunner {
public:
    /// errors  io; refused: the snapshot folder's mode
    static Result<std::unique_ptr<JobRunner>> start(JobRunnerOptions options);
    JobRunner(JobRunnerOptions options, Snapshots snapshots, std::unique_ptr<Segments> segments);
    ~JobRunner();
    JobRunner(const JobRunner&) = delete;
    JobRunner& operator=(const JobRunner&) = delete;

    /// Before any job of the experiment: its file. Called for new and for recovered ones.
    void know(const SaveExperiment& saved);
    // One per kind of job; AbsorbUpdate comes here when its bytes have been fetched.
    void make_model(const MakeModel& job);
    void open_round(const OpenRound& job);
    void absorb(const AbsorbUpdate& job, FetchedBlob update);
    /// Fetched, and not wanted any more.
    void discard(const FetchedBlob& update);
    void finish_round(const FinishRound& job);
    void evaluate(const EvaluateModel& job);
    /// From here on the store says which snapshots stay.
    void evaluation_stored(ExperimentId experiment, std::uint32_t round);
    void release(const ReleaseExperiment& job);
    /// After a commit: what the store still names stays, other snapshots go.
    void keep_only(std::set<Digest> named);
    /// Where a committed model lies; thread-safe.
    [[nodiscard]] std::filesystem::path model_path(const Digest& model) const;
    /// A model or segment for those who pull it: the newest model, when it is small, from memory, for it goes to all
    /// members at once.
    ///
    /// errors   not_found
    /// threads  thread-safe
    [[nodiscard]] Result<Blob> model_blob(const Digest& model) const;
    /// For the bytes of experiments that run at one time; while one runs alone it costs a look. threads: thread-safe
    void note_chunk(const MovedChunk& chunk);
    /// Away from the caller's thread, for a large file takes its time to go.
    void remove_file(std::filesystem::path file);
    /// Models and store as of the last commit. threads: thread-safe
    [[nodiscard]] std::uint64_t state_bytes() const { return state_bytes_; }

private:
    using Setup = std::shared_ptr<const ExperimentSetup>;

    [[nodiscard]] Setup setup_of(ExperimentId experiment, std::uint32_t round, const std::string& job);
    Result<std::shared_ptr<const RoundInput>> open(const Setup& setup, const OpenRound& job);
    void check(const AbsorbUpdate& job, const FetchedBlob& update, const std::shared_ptr<const RoundInput>& input,
               const Setup& setup);
    void keep_segment(const AbsorbUpdate& job, const SharedBytes& file, Duration verify);
    [[nodiscard]] Result<Bytes> start_model(const ExperimentSetup& setup, const OpenRound& job);
    Status open_relays(const ExperimentSetup& setup, const OpenRound& job, const RoundInput& input);
    Status add_groups(const ExperimentSetup& setup, const FinishRound& job);
    void add(const AbsorbUpdate& job, CheckedUpdate checked, Duration verify);
    void use_committed_model(const MakeModel& job);
    void answer_absorbed(const AbsorbUpdate& job, std::optional<Refusal> refusal, std::optional<Error> error,
                         Duration verify = {}, Duration aggregate = {});
    void answer_made(const MakeModel& job, const Digest& model, std::uint64_t bytes);
    void answer_failed(ExperimentId experiment, std::uint32_t round, std::string job, Error error);
    void publish(const Digest& model, const Bytes& file);
    void begin_counting(ExperimentId experiment);
    void end_counting(ExperimentId experiment);
    template <class Answer>
    void count_traffic(Answer& answer) {
        const auto own = shares_.of(answer.experiment, options_.traffic());
        answer.bytes_up_total = own.received;
        answer.bytes_down_total = own.sent;
    }
    void write_first_model(const MakeModel& job, const Result<Bytes>& file);
    Result<Digest> write_snapshot(const Bytes& file, const Digest& digest);
    std::uint64_t measure_state();
    [[nodiscard]] Result<Bytes> read_named_model(const std::string& name) const;
    Result<const Dataset*> held_out(const ExperimentSetup& setup);
    CoordinatorEvent evaluate_now(const EvaluateModel& job, const ExperimentSetup& setup);

    JobRunnerOptions options_;
    std::map<ExperimentId, Setup> setups_;                       // loop thread
    std::map<ExperimentId, Error> unreadable_;                   // loop thread
    std::map<ExperimentId, Error> unopened_;                     // sums thread: why its last open_round failed
    Snapshots snapshots_;                                        // sums thread
    std::unique_ptr<Segments> segments_;                         // written on the sums thread
    std::atomic<std::uint64_t> state_bytes_ = 0;
    Instant measured_at_{};                                      // sums thread
    std::map<ExperimentId, RoundWork> rounds_;                   // sums thread
    TrafficShares shares_;                                       // sums thread
    std::atomic<bool> counts_chunks_ = false;
    using RoundKey = std::pair<ExperimentId, std::uint32_t>;
    std::map<RoundKey, Digest> being_evaluated_;                 // sums thread: must not be removed meanwhile
    std::map<std::string, std::unique_ptr<Dataset>> held_outs_;  // trainer thread, by name and options
    std::unique_ptr<Trainer> trainer_;                           // trainer thread
    std::uint32_t next_checker_ = 0;                             // sums thread
    struct NewestModel {
        Digest digest;
        std::shared_ptr<const Bytes> file;
    };
    Published<NewestModel> newest_;  // of small ones
    // Destroyed in reverse: checkers first, for they post to sums; the trainer posts to sums too.
    std::unique_ptr<WorkThread> sums_;
    std::unique_ptr<WorkThread> trainer_thread_;
    std::vector<std::unique_ptr<WorkThread>> checkers_;
};

}  // namespace causeway
