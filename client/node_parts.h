// The node's parts and the loop's events: what the files of the node share. Internal to client/; start at node.h.
//
// The loop thread owns everything here but what the parts' own threads do; they answer by the queue.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "client/log_entries.h"
#include "client/node.h"
#include "client/node_files.h"
#include "client/node_log.h"
#include "client/node_trainer.h"
#include "client/renewal.h"
#include "client/session.h"
#include "common/effect_queue.h"
#include "common/listening_clock.h"
#include "wire/streams.h"
#include "wire/transfer_engine.h"

namespace causeway::node {

constexpr std::size_t queue_limit = 1 << 16;
constexpr std::size_t link_queue_limit = 4096;

struct StepStored {
    std::uint64_t step = 0;
};
struct StartTraining {
    Assign assign;
    Result<TrainingStart> start;
};
struct Fetched {
    Digest model;
    Result<FetchedBlob> blob;
};
struct CacheChecked {
    Digest model;
    std::uint64_t bytes = 0;
    Result<bool> here;
};
/// A model that was needed is in the cache, or why not.
struct ModelHere {
    Digest model;
    Status status;
};
/// A model to evaluate, or why it is not here.
struct EvaluationModel {
    Evaluate job;
    Result<TrainingStart> start;
};
/// What a cell of this node starts its turn from.
struct StartTurn {
    Assign assign;
    Result<TrainingStart> start;
};
struct StopLoop {};
using LoopEvent = std::variant<LinkEvent, Event, StepStored, StartTraining, StartTurn, Fetched, CacheChecked, ModelHere,
                               EvaluationModel, LogEntry, StopLoop>;
using LoopQueue = BoundedQueue<LoopEvent>;

struct Node::Parts {
    Enrolment enrolment;
    NodeOptions options;
    std::shared_ptr<LoopQueue> queue = std::make_shared<LoopQueue>(queue_limit);
    LinkQueues link_queues{nullptr, std::make_shared<LinkEvents>(link_queue_limit),
                           [q = queue](LinkEvent& event) { return offer<LoopQueue, LoopEvent>(*q, event); },
                           std::make_shared<LinkEvents>(link_queue_limit)};
    std::unique_ptr<NodeFiles> files;
    std::unique_ptr<NodeLog> log;
    std::unique_ptr<Link> link;
    std::unique_ptr<TransferEngine> transfers;
    std::unique_ptr<Streams> streams;
    std::unique_ptr<NodeTrainer> trainer;
    std::unique_ptr<Session> session;
    std::optional<Renewal> renewal;
    EffectQueue<Effects> effects;
    using Needed = std::function<void(const Status&)>;
    std::map<Digest, std::vector<Needed>> needed;  // models on their way, and who waits: training, evaluations
    ConnectionId connection = 0;
    std::size_t attempts = 0;
    std::int64_t started_unix_s = wall_clock_unix_s();
    bool welcomed = false;
    bool rostered = false;  // somebody may stream with this node
    ListeningClock clock;
    bool listens = false;  // the link has been asked to hear the coordinator out before the machine is woken
    Instant now{};         // of the machine
    Instant wake_at = never;
    Instant settle_at{};

    Parts(Enrolment e, NodeOptions o) : enrolment(std::move(e)), options(std::move(o)) {}
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    ~Parts() {
        log.reset();  // its thread may still want to answer
        queue->close();
        if (trainer) {
            trainer->close();  // it sends by streams, and streams bring it what peers send
        }
        streams.reset();
        trainer.reset();
        transfers.reset();
        link.reset();
        files.reset();
    }

    Status start();
    Status start_link();
    Status run();
    void be_woken();
    void step(const Event& event) {
        note(entry_of_event(event));
        take(session->step(now, event));
    }
    void note(std::optional<LogEntry> entry);
    void answer(const Request& request);
    void take(Effects made);
    void release();
    void start_job(const Job& job);
    void connect();
    void need_model(const Digest& model, std::uint64_t bytes, Needed done);
    void fetch(const FetchModel& job);
    void train(const Train& job);
    Status start_streams();
    void run_turn(const RunTurn& job);
    void keep_certificate();
    void hear(const Reply& reply);
    void evaluate(const Evaluate& job);
    void evaluated(const Evaluate& job, const Result<Figures>& figures);

    void on(const LinkEvent& event);
    void on(const Event& event) { step(event); }
    void on(const StepStored& event);
    void on(const StartTraining& event);
    void on(const StartTurn& event);
    void on(const Fetched& event);
    void on(const CacheChecked& event);
    void on(const ModelHere& event);
    void on(const EvaluationModel& event);
    void on(const LogEntry& entry) { note(entry); }
    void on(const StopLoop&) {}
    [[nodiscard]] const Address& address() const {
        return enrolment.coordinators[attempts % enrolment.coordinators.size()];
    }
};

}  // namespace causeway::node
