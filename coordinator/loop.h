// The daemon's loop, split from its start: turns what happens on other threads into the machines' events, and the
// machines' effects into work for other threads. Thread: loop, but for the queue.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>

#include "common/effect_queue.h"
#include "common/listening_clock.h"
#include "coordinator/admission.h"
#include "coordinator/daemon_limits.h"
#include "coordinator/job_runner.h"
#include "coordinator/machine.h"
#include "coordinator/metrics.h"
#include "coordinator/spool_room.h"
#include "coordinator/store_thread.h"
#include "wire/transfer_engine.h"

namespace causeway {

/// What other threads tell the loop.
struct StepStored {
    std::uint64_t step = 0;
};
struct StoreStuck {  // until the next StepStored
    Error why;
};
struct UpdateFetched {
    AbsorbUpdate job;
    Result<FetchedBlob> blob;
};
struct SendLater {  // an answer that another thread has worked out
    ConnectionId connection = 0;
    Message message;
};
struct SessionRefused {  // by the link: its certificate is revoked
    PeerIdentity peer;
    std::string address;
};
/// --http asks what to show; the answer goes into the queue that the asker waits on.
struct ScrapeMetrics {
    std::shared_ptr<BoundedQueue<CoordinatorMetrics>> answer;
};
struct StopLoop {
    std::optional<Error> why;
};
using LoopEvent = std::variant<LinkEvent, CoordinatorEvent, StepStored, StoreStuck, UpdateFetched, SendLater,
                               SessionRefused, ScrapeMetrics, StopLoop>;
using LoopQueue = BoundedQueue<LoopEvent>;

/// The threads that the loop hands work to; all outlive it.
struct LoopPartners {
    Link& link;
    TransferEngine& transfers;
    StoreThread& store;
    JobRunner& jobs;
    Admission& admission;
    std::filesystem::path spool;
    std::shared_ptr<DaemonLimits> limits;
    std::function<void(Instant)> alive;  // called on each turn, at least once a second
};

class Loop {
public:
    Loop(Coordinator machine, LoopPartners partners, std::shared_ptr<LoopQueue> queue);
    /// Runs until a StopLoop comes.
    Status run();

private:
    struct Session {
        PeerIdentity peer;
        std::string address;
        bool greeted = false;
        Pace pace = Pace::idle;
    };
    /// What an operator wants to know of a node, passed on and not answered yet.
    struct Question {
        ConnectionId asker = 0;
        std::uint64_t request = 0;
        ConnectionId node = 0;
    };
    /// What somebody here wants to know when it is durable.
    using Fact = std::variant<SaveEvaluation, CommitStored>;
    /// Experiment, round, node; of a segment also its turn: a host brings several at once.
    using AbsorbKey = std::tuple<ExperimentId, std::uint32_t, std::string, std::uint32_t>;
    static AbsorbKey key_of(const AbsorbUpdate& job) {
        return {job.experiment, job.round, job.node, job.segment.empty() ? 0 : job.attempt};
    }

    void keep_time();
    void be_woken();
    void step(const CoordinatorEvent& event);
    void take(CoordinatorEffects effects);
    std::vector<Fact> note(const std::vector<Persist>& persists);
    void release();
    void send(std::vector<Send> sends);
    void keep_pace(ConnectionId connection, const Message& message);
    void start(const Job& job);
    void read(const ReadRounds& job);
    // loop_spool.cpp
    void fetch(const AbsorbUpdate& job);
    void allow_relays(ConnectionId session, const Roster& roster);
    void cancel(const CancelAbsorb& job);
    void let_in();
    void pull(const AbsorbUpdate& job);
    void leave_spool(const Digest& update, std::uint64_t part);
    void find_parts();
    void forget_parts();
    void remove_parts(const std::vector<Digest>& updates);

    void on(const LinkEvent& event);
    void on(const CoordinatorEvent& event);
    void on(const StepStored& event);
    void on(const StoreStuck& event);
    void on(const UpdateFetched& event);
    void on(const SendLater& event);
    void on(const SessionRefused& event) { partners_.admission.note_refusal(event.peer, event.address); }
    void on(const ScrapeMetrics& event);
    void on(const StopLoop&) {}
    void on_peer(const PeerOpened& event);
    void on_peer(const PeerMessage& event);
    void on_peer(const PeerClosed& event);
    void on_peer(const PeerSilent& event);
    void on_peer(const PeerHeard& event);
    void on_peer(const PeerSent&) {}
    void on_peer(const PeerMeasured& event);
    void on_peer(const PeersRead&) { be_woken(); }
    bool answer_stuck(ConnectionId connection, const Session& session, const Message& message);
    void on_request(ConnectionId connection, const Session& session, const Request& request);
    void ask_node(ConnectionId connection, const Request& request, const std::string& by, const Json& body);
    void forward(ConnectionId node, const Reply& reply);
    void forget_questions(ConnectionId connection);
    void revoke(const Json& body, const std::string& by, const Admission::Answer& done);
    [[nodiscard]] std::set<std::string> connected() const;
    void on_join(ConnectionId connection, const JoinRequest& request);
    void answer(ConnectionId connection, std::uint64_t request, const Result<Json>& body);

    Coordinator machine_;
    LoopPartners partners_;
    std::shared_ptr<LoopQueue> queue_;
    EffectQueue<CoordinatorEffects> effects_;
    std::map<ConnectionId, Session> sessions_;
    std::map<std::uint64_t, Question> questions_;  // by the number that the node was asked under
    std::uint64_t last_question_ = 0;
    std::map<AbsorbKey, AbsorbUpdate> fetching_;
    std::map<std::string, std::vector<RelayPair>> relays_;  // by client: whom its last roster lets it reach
    std::map<std::uint64_t, std::vector<Fact>> facts_;  // by the step that stores them
    SpoolRoom room_;
    std::deque<AbsorbUpdate> waiting_for_room_;
    std::deque<CoordinatorEvent> next_;  // answers that the loop itself gives
    std::optional<Error> stuck_;         // the store cannot store: what the machines say has to wait
    ListeningClock clock_;
    bool listens_ = false;  // the link has been asked to hear everybody out before the machine is woken
    Instant now_{};         // of the machine
    Instant real_now_{};    // of the link and of certificates
    Instant wake_at_ = never;
};

}  // namespace causeway
