// What the coordinator's machines are told (events) and what they ask for (effects). Pure data: the daemon and the
// simulator execute the same effects.
//
// The order is a contract: persist, then send, then start jobs, then wake. A send or job of a step is released only
// when the store has reported this step's persists done, and steps are released in order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/digest.h"
#include "common/json.h"
#include "common/time.h"
#include "coordinator/measurements.h"
#include "wire/message.h"

namespace causeway {

using ExperimentId = std::uint64_t;
using SessionId = std::uint64_t;  // rises; unique for the life of a coordinator process

// ---------------------------------------------------------------- what the store has of a round
/// An evaluation as it is persisted: its figures, or with 0 examples only the reason why there are none.
struct SaveEvaluation {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    double loss = 0;
    double accuracy = 0;
    std::uint64_t examples = 0;
    Json detail{};      // as in ModelEvaluated; "note": why there are no figures, or who is not in them
    double worth = 0;   // by evaluation.metric, greater is better: the store keeps the best round's snapshot
};
/// A SaveCommit without its participants, its next cohort and their times, and its evaluation if it came.
struct StoredRound {
    std::uint32_t round = 0;
    Digest model;
    std::uint64_t model_bytes = 0;
    Json summary;
    std::optional<SaveEvaluation> evaluation;
};

// ---------------------------------------------------------------- events
struct SessionOpened {
    SessionId session = 0;
    std::string node;  // from the certificate
    std::string role;  // client | operator | host | aggregator
    Hello hello;
    Digest fingerprint{};  // of the certificate: for rosters
};
struct SessionClosed {
    SessionId session = 0;
    std::string reason;
};
/// Measured on the link thread (liveness rules there): no sign of life within the bound.
struct SessionSilent {
    SessionId session = 0;
};
/// A silent session speaks again.
struct SessionHeard {
    SessionId session = 0;
};
struct MessageReceived {
    SessionId session = 0;
    Message message;
};
/// Its certificates were revoked, durably; the link lets it in no more.
struct NodeRevoked {
    std::string node;
    std::string by;
};
/// The time asked for by wake_at has come.
struct Tick {};
/// This process did not run for a while and `now` has not counted it (common/listening_clock.h). Told before what has
/// come meanwhile: who lost the connection in that time did so for our sake.
struct StoodStill {};

// results of jobs
/// MakeModel: the initial model is on disk under its digest.
struct ModelMade {
    ExperimentId experiment = 0;
    Digest model;
    std::uint64_t bytes = 0;
    std::uint64_t bytes_up_total = 0;    // as in SnapshotWritten: the first round's bytes begin here
    std::uint64_t bytes_down_total = 0;
};
/// OpenRound of a round of relays: the segments that every group starts from, and how large they are. Of a round of
/// statistics, from where its bytes are counted.
struct RoundOpened {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    std::vector<std::pair<Digest, std::uint64_t>> segments;  // by stage
    std::uint64_t bytes_up_total = 0;
    std::uint64_t bytes_down_total = 0;
};
/// AbsorbUpdate: fetched, decoded, past the firewall and in the sum; or not.
struct UpdateAbsorbed {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    std::uint32_t attempt = 0;
    std::string node;
    Digest update;
    std::optional<Refused> refusal;  // code, message, tensor, index
    std::optional<Error> fetch_error;  // the transfer broke: the client may offer again
    Duration verify{};                 // decoding and the firewall took so long,
    Duration aggregate{};              // and adding it to the sum
};
/// FinishRound: the snapshot of the next model is durable under its digest.
struct SnapshotWritten {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    Digest model;
    std::uint64_t bytes = 0;
    double update_norm = 0;
    std::uint64_t bytes_up_total = 0;    // at the sockets of client sessions since the process started, both after
    std::uint64_t bytes_down_total = 0;  // encryption: a round's bytes are the difference to the last commit's
    Duration aggregate{};                // the division; the rest of the job is the snapshot
    std::string normalise{};             // of round 0: what its statistics come to (configs/statistics.h),
    std::uint64_t examples = 0;          // of so many examples; the snapshot is then the first model
};
/// A step that held this round's commit is durable: what follows from it has been sent.
struct CommitStored {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
};
struct ModelEvaluated {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    double loss = 0;
    double accuracy = 0;  // NaN: not measured, as for regression
    std::uint64_t examples = 0;
    Json detail{};  // the other figures by name (configs/figures.h); "clients": what those measured
};
/// A job failed for a reason of this machine (disk full): the experiment pauses and the job is retried.
struct JobFailed {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    std::string job;  // make_model | finish_round | evaluate
    Error error;
};

/// ReadRounds: what the store has of these rounds, ascending; less than was asked for only at the last one.
struct RoundsRead {
    ExperimentId experiment = 0;
    std::uint32_t from = 0;
    std::vector<StoredRound> rounds;
    std::optional<Error> error;
};

using CoordinatorEvent =
    std::variant<SessionOpened, SessionClosed, SessionSilent, SessionHeard, MessageReceived, NodeRevoked, Tick,
                 StoodStill,
                 ModelMade, RoundOpened, UpdateAbsorbed, SnapshotWritten, CommitStored, ModelEvaluated, JobFailed,
                 LinkMeasured, RoundsRead>;

// ---------------------------------------------------------------- effects
// persists, executed in order, all of one step in one SQLite transaction
struct SaveExperiment {  // new, or a status change
    ExperimentId experiment = 0;
    std::string name;
    std::string file;    // the resolved experiment file (canonical TOML), by which a restart goes on
    std::string state;   // queued | starting | running | paused | succeeded | failed | cancelled
    std::string reason;
    std::string submitted_by;
    ExperimentId parent = 0;         // goes on from this one's commit, 0: from an initial model
    std::uint32_t parent_round = 0;  // its first commit has this number and names the parent's model of it
    std::string build;               // of the engine that runs it; empty: not started
};
/// One line of the decision log: what time or arrival decided, before it takes effect.
struct SaveDecision {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    std::string kind;  // cohort | selection | dropped | refused | ...: coordinator/decisions.h has each detail
    Json detail;
};
/// The commit of a round: names the snapshot, its participants and the next round's cohort in one transaction.
struct SaveCommit {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;  // 0: the initial model; that of a resumed experiment has its parent's number
    Digest model;
    std::uint64_t model_bytes = 0;
    std::vector<std::pair<std::string, Digest>> participants;  // node, update; sorted by node
    std::vector<std::string> next_cohort;                      // sorted; empty after the last round
    Json summary;  // clients, train loss, seconds, bytes up and down, where the time went (round_clock.h)
};
/// What a node holds, whenever it declares something new: a dataset is unknown only if no node ever declared it.
struct SaveDeclaration {
    std::string node;
    std::vector<DatasetDeclaration> datasets;
};
using Persist = std::variant<SaveExperiment, SaveDecision, SaveCommit, SaveEvaluation, SaveDeclaration>;

struct Send {
    SessionId session = 0;
    Message message;
};
/// Say why, then expel.
struct CloseSession {
    SessionId session = 0;
    std::string code;
    std::string message;
    ErrorKind kind = ErrorKind::refused;
};

// jobs
struct MakeModel {
    ExperimentId experiment = 0;
    Digest from;  // of a resumed experiment: its parent's model, which only has to be there; empty: make one
};
/// Start a fresh sum for the round (the next FinishRound divides it). Round 0 is one of statistics: it starts from no
/// model, and its end makes the first one.
struct OpenRound {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    Digest start_model;
    std::uint32_t members = 0;  // of round 0: bounds the sums of each
};
struct AbsorbUpdate {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    std::uint32_t attempt = 0;
    std::string node;
    SessionId session = 0;
    HeldUpdate update;
    std::string segment{};  // of a relay's turn: its layers; the update is then a segment file, and is kept as one
};
/// Give up the member's AbsorbUpdate that is under way. It is answered by UpdateAbsorbed all the same: with a
/// fetch_error (code `cancelled`) when nothing of it is in the sum, or as absorbed when that was already done.
struct CancelAbsorb {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    std::string node;
};
/// What a group of relays has come to: it enters the sum as one update.
struct GroupResult {
    std::vector<Digest> segments;  // by stage
    std::uint64_t examples = 0;
    bool operator==(const GroupResult&) const = default;
};
/// Division, outer optimizer, snapshot, fsync, rename, folder fsync.
struct FinishRound {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    std::vector<GroupResult> groups{};  // of a round of relays
};
/// Answered by ModelEvaluated or JobFailed, one after the other in the order asked. Where only clients evaluate there
/// is no answer: the job then keeps the model for them. In every case it stays until its evaluation is stored.
struct EvaluateModel {
    ExperimentId experiment = 0;
    std::uint32_t round = 0;
    Digest model;
};
/// Forget sums and spooled updates of the experiment (failed, cancelled, done).
struct ReleaseExperiment {
    ExperimentId experiment = 0;
};
/// Committed rounds that somebody asks about and that are only in the store: read behind all persists so far.
struct ReadRounds {
    ExperimentId experiment = 0;
    std::uint32_t from = 0;
    std::uint32_t count = 0;
};
using Job = std::variant<MakeModel, OpenRound, AbsorbUpdate, CancelAbsorb, FinishRound, EvaluateModel,
                         ReleaseExperiment, ReadRounds>;

struct CoordinatorEffects {
    std::vector<Persist> persist;
    std::vector<Send> send;
    std::vector<CloseSession> close;
    std::vector<Job> jobs;
    std::vector<std::string> say;  // lines of this process's log that no persist stands for
    Instant wake_at = never;
};

}  // namespace causeway
