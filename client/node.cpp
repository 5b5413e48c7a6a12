// The loop: what other threads tell becomes the machine's events, the machine's effects become their work.
#include "client/node.h"

#include <algorithm>
#include <thread>
#include <variant>

#include <fmt/format.h>

#include "client/log_entries.h"
#include "client/node_files.h"
#include "client/node_log.h"
#include "client/node_trainer.h"
#include "client/renewal.h"
#include "client/session.h"
#include "common/effect_queue.h"
#include "common/overloaded.h"
#include "common/random.h"
#include "data/reader.h"
#include "wire/transfer_engine.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t queue_limit = 1 << 16;
constexpr std::size_t link_queue_limit = 4096;
constexpr Duration settle_interval = std::chrono::seconds(1);
constexpr std::uint64_t small_model = 4 << 20;  // comes in memory: files would take more time than its way

struct StepStored {
    std::uint64_t step = 0;
};
struct StartTraining {
    Assign assign;
    Result<TrainingStart> start;
};
struct Fetched {
    FetchModel job;
    Result<FetchedBlob> blob;
};
struct CacheChecked {
    FetchModel job;
    bool here = false;
};
struct StopLoop {};
using LoopEvent = std::variant<LinkEvent, Event, StepStored, StartTraining, Fetched, CacheChecked, StopLoop>;
using LoopQueue = BoundedQueue<LoopEvent>;

/// As stored, without an experiment's options: what a node holds, not how it will be read.
Result<std::vector<DatasetDeclaration>> declare(const std::map<std::string, fs::path>& datasets) {
    std::vector<DatasetDeclaration> all;
    for (const auto& [name, path] : datasets) {
        TRY_ASSIGN(const auto dataset, read_raw_dataset(path, DataOptions{}));
        all.push_back({.name = name,
                       .digest = dataset_digest(dataset),
                       .examples = dataset.size(),
                       .shape = dataset.shape,
                       .classes = dataset.classes});
    }
    return all;
}

/// Words of the coordinator after which trying again is useless: any refusal of the first session, and later on the one
/// that no waiting mends.
bool is_final(const Error& why, bool welcomed) {
    return welcomed ? why.code == "revoked" : why.kind == ErrorKind::refused || why.code == "identity_in_use";
}

}  // namespace

struct Node::Parts {
    Enrolment enrolment;
    NodeOptions options;
    std::shared_ptr<LoopQueue> queue = std::make_shared<LoopQueue>(queue_limit);
    LinkQueues link_queues{std::make_shared<LinkEvents>(link_queue_limit),
                           std::make_shared<LinkEvents>(link_queue_limit)};
    std::unique_ptr<NodeFiles> files;
    std::unique_ptr<NodeLog> log;
    std::unique_ptr<Link> link;
    std::unique_ptr<TransferEngine> transfers;
    std::unique_ptr<NodeTrainer> trainer;
    std::unique_ptr<Session> session;
    std::optional<Renewal> renewal;
    std::thread forward;
    EffectQueue<Effects> effects;
    ConnectionId connection = 0;
    std::size_t attempts = 0;
    std::int64_t started_unix_s = wall_clock_unix_s();
    bool welcomed = false;
    Instant now{};
    Instant wake_at = never;
    Instant settle_at{};

    Parts(Enrolment e, NodeOptions o) : enrolment(std::move(e)), options(std::move(o)) {}
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    ~Parts() {
        log.reset();  // its thread may still want to answer
        queue->close();
        trainer.reset();
        transfers.reset();
        link.reset();
        link_queues.control->close();
        if (forward.joinable()) {
            forward.join();
        }
        files.reset();
    }

    Status start();
    Status start_link();
    Status run();
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
    void fetch(const FetchModel& job);
    void train(const Train& job);
    void keep_certificate();
    void hear(const Reply& reply);

    void on(const LinkEvent& event);
    void on(const Event& event) { step(event); }
    void on(const StepStored& event);
    void on(const StartTraining& event);
    void on(const Fetched& event);
    void on(const CacheChecked& event);
    void on(const StopLoop&) {}
    [[nodiscard]] const Address& address() const {
        return enrolment.coordinators[attempts % enrolment.coordinators.size()];
    }
};

Status Node::Parts::start() {
    TRY_ASSIGN(log, NodeLog::open(options.state));
    TRY_ASSIGN(files, NodeFiles::open(options.state));
    TRY(make_private_folder(options.state / "downloads"));
    TRY_ASSIGN(auto device, Device::open(options.device, {.threads = options.threads}));
    SessionOptions session_options{.node = enrolment.name, .software = "causeway " CAUSEWAY_VERSION};
    session_options.compute_signature = "causeway " CAUSEWAY_VERSION " " + device.signature();
    TRY_ASSIGN(session_options.datasets, declare(options.datasets));
    TRY_ASSIGN(session_options.held, files->load_held());
    session_options.experiments = files->kept();
    session_options.jitter_seed = node_key(enrolment.name);
    session_options.policy = [this](const Assign& assign) -> std::optional<Objection> {
        if (auto objection = judge(options.policy, assign, options.local_now())) {
            return objection;
        }
        const auto status = check_assignment(assign);
        return status ? std::nullopt : std::optional(Objection{status.error().code, status.error().message});
    };
    session = std::make_unique<Session>(std::move(session_options));
    trainer = std::make_unique<NodeTrainer>(enrolment.name, std::move(device), options.datasets);
    return start_link();
}

Status Node::Parts::start_link() {
    TRY_ASSIGN(auto credentials, load_credentials(options.state / "node"));
    renewal.emplace(options.state / "node", credentials);
    TRY_ASSIGN(link, Link::start({.credentials = std::move(credentials), .unix_now = options.unix_now}, link_queues));
    const auto source = [this](const Digest& digest, const PeerIdentity& reader) -> Result<Blob> {
        if (reader.identity.role != Role::coordinator) {
            return fail(ErrorKind::refused, "not_for_you", "updates are for the coordinator only");
        }
        auto bytes = files->held_bytes(digest);
        return bytes ? Result<Blob>(std::move(bytes))
                     : fail(ErrorKind::not_found, "not_found", "no update " + digest.short_hex() + " is held here");
    };
    transfers = std::make_unique<TransferEngine>(*link, link_queues.bulk, source);
    forward = std::thread([events = link_queues.control, q = queue] {
        while (auto event = events->pop()) {
            q->push(std::move(*event));
        }
    });
    return {};
}

Status Node::Parts::run() {
    now = real_now();
    take(session->start(now));
    while (true) {
        const auto patience =
            std::min<Duration>(std::max<Duration>(wake_at - now, Duration::zero()), std::chrono::seconds(1));
        const auto event = queue->pop_for(patience);
        now = real_now();
        if (now >= settle_at) {
            settle_at = now + settle_interval;
            files->settle();
            if (session->working() || session->holds()) {
                transfers->want(connection);  // what is held here, the coordinator pulls when it has room
            }
        }
        if (options.alive) {
            options.alive(now);
        }
        if (event && std::holds_alternative<StopLoop>(*event)) {
            return {};
        }
        if (const auto* happened = event ? std::get_if<LinkEvent>(&*event) : nullptr) {
            const auto* closed = std::get_if<PeerClosed>(happened);
            if (closed && closed->connection == connection && is_final(closed->why, welcomed)) {
                return fail(closed->why);
            }
        }
        if (event) {
            std::visit([this](const auto& e) { on(e); }, *event);
        }
        if (now >= wake_at) {
            step(Tick{});
        }
        keep_certificate();
    }
}

// Beside the session machine: whatever it is at work on goes on.
void Node::Parts::keep_certificate() {
    if (session->online()) {
        if (auto request = renewal->ask(now, options.unix_now())) {
            link->send(connection, *std::move(request));
        }
    }
    if (const auto line = renewal->take_words(); !line.empty()) {
        options.say(line);
    }
}

void Node::Parts::hear(const Reply& reply) {
    const auto renewed = renewal->hear(reply, options.unix_now());
    if (!renewed) {
        return;
    }
    if (const auto used = link->use(*renewed); !used) {
        options.say(used.error().message);
    }
}

void Node::Parts::take(Effects made) {
    wake_at = made.wake_at;
    for (const auto& line : made.say) {
        options.say(line);
    }
    auto persists = std::exchange(made.persist, {});
    const auto number = effects.push(std::move(made), !persists.empty());
    if (!persists.empty()) {
        files->apply(std::move(persists), [q = queue, number] { q->push(StepStored{number}); });
    }
    release();
}

void Node::Parts::release() {
    while (auto step = effects.pop()) {
        for (auto& message : step->send) {
            note(entry_of_said(message));
            link->send(connection, std::move(message));
        }
        for (const auto& job : step->jobs) {
            start_job(job);
        }
    }
}

void Node::Parts::start_job(const Job& job) {
    std::visit(Overloaded{[this](const Connect&) { connect(); },
                          [this](const Disconnect& j) { link->close(connection, bye(j.reason)); },
                          [this](const FetchModel& j) { fetch(j); }, [this](const Train& j) { train(j); },
                          [this](const StopTraining&) { trainer->stop(); }},
               job);
}

void Node::Parts::connect() {
    connection = link->connect({.to = address()});
    link->set_pace(connection, Pace::idle);
}

// ---------------------------------------------------------------- models and training

void Node::Parts::fetch(const FetchModel& job) {
    files->has_model(job.model, [q = queue, job](bool here) { q->push(CacheChecked{job, here}); });
}

void Node::Parts::on(const CacheChecked& event) {
    if (event.here) {
        return step(ModelFetched{event.job.model, std::nullopt});
    }
    const Fetch fetch{.digest = event.job.model,
                      .bytes = event.job.bytes,
                      .destination = options.state / "downloads" / event.job.model.hex(),
                      .durability = Durability::unflushed,
                      .in_memory_up_to = small_model};
    transfers->fetch(connection, fetch, [q = queue, job = event.job](Result<FetchedBlob> blob) {
        q->push(Fetched{job, std::move(blob)});
    });
}

void Node::Parts::on(const Fetched& event) {
    if (!event.blob) {
        if (event.blob.error().code == "disk_full") {
            files->make_room();
        }
        return step(ModelFetched{event.job.model, event.blob.error()});
    }
    if (event.blob->bytes) {
        files->adopt_model(event.job.model, event.blob->bytes);
        return step(ModelFetched{event.job.model, std::nullopt});
    }
    files->adopt_model(event.job.model, event.blob->file, [q = queue, model = event.job.model](const Status& adopted) {
        q->push(Event(ModelFetched{model, adopted ? std::nullopt : std::optional(adopted.error())}));
    });
}

void Node::Parts::train(const Train& job) {
    files->start_training(job.assign, [q = queue, assign = job.assign](Result<TrainingStart> start) {
        q->push(StartTraining{assign, std::move(start)});
    });
}

void Node::Parts::on(const StartTraining& event) {
    const auto lease = event.assign.lease;
    if (!event.start && event.start.error().code == "model_lost") {
        return step(ModelLost{lease, event.start.error()});
    }
    if (!event.start) {
        return step(Trained{lease, {}, event.start.error()});
    }
    const auto progress = [q = queue, lease](std::uint64_t step, std::uint64_t steps, double loss) {
        q->push(
            Event(TrainingProgress{lease, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(steps), loss}));
    };
    trainer->train(event.assign, event.start->model, event.start->base, progress,
                   [this, q = queue, lease](Result<TrainingOutput> output) {
                       if (!output) {
                           q->push(Event(Trained{lease, {}, output.error()}));
                           return;
                       }
                       const auto held = output->held;
                       files->hold(*std::move(output), [q, lease, held](const Status& stored) {
                           q->push(Event(Trained{lease, held, stored ? std::nullopt : std::optional(stored.error())}));
                       });
                   });
}

void Node::Parts::on(const StepStored& event) {
    effects.stored(event.step);
    release();
}

// ---------------------------------------------------------------- link

void Node::Parts::on(const LinkEvent& event) {
    const auto closed = [this](const PeerClosed& e) {
        if (e.connection == connection) {
            ++attempts;  // the next address, where there are several
            transfers->detach(e.connection);
            renewal->forget();
            step(Disconnected{e.why});
        }
    };
    const auto message = [this](const PeerMessage& e) {
        if (e.connection != connection) {
            return;
        }
        if (const auto* welcome = std::get_if<Welcome>(&e.message)) {
            welcomed = true;
            transfers->attach(connection, address(), welcome->session);
        }
        if (std::holds_alternative<Assign>(e.message)) {
            link->set_pace(connection, Pace::leased);
            transfers->want(connection);
        } else if (std::holds_alternative<Ended>(e.message)) {
            link->set_pace(connection, Pace::idle);
        }
        if (const auto* reply = std::get_if<Reply>(&e.message)) {
            return hear(*reply);
        }
        if (const auto* request = std::get_if<Request>(&e.message)) {
            return answer(*request);
        }
        note(entry_of_heard(e.message));
        step(MessageReceived{e.message});
    };
    std::visit(Overloaded{[this](const PeerOpened& e) {
                              if (e.connection == connection) {
                                  step(Connected{});
                              }
                          },
                          closed, message, [](const PeerSilent&) {}, [](const PeerHeard&) {}, [](const PeerSent&) {}},
               event);
}

// ---------------------------------------------------------------- the log

/// Where something ends, what it has cost so far stands beside it.
void Node::Parts::note(std::optional<LogEntry> entry) {
    if (!entry) {
        return;
    }
    if (entry->what == "disconnected" || entry->what == "ended") {
        const auto traffic = link->traffic();
        entry->detail.set("bytes_up", traffic.sent).set("bytes_down", traffic.received);
    }
    log->add(*std::move(entry));
}

/// The coordinator passes on what an operator asks of this node; the policy decides. docs/protocol.md has the verb.
void Node::Parts::answer(const Request& request) {
    const auto refuse = [&](ErrorKind kind, const std::string& code, const std::string& message) {
        link->send(connection, Reply{request.id, true, "", ErrorNotice{kind, code, message}});
    };
    const auto body = Json::parse(request.body, max_request_bytes);
    if (request.verb != "node.log" || !body) {
        return refuse(ErrorKind::unsupported, "unknown_verb", "this node has no \"" + request.verb + "\"");
    }
    const auto by = (*body)["by"].text();
    if (const auto objection = judge_log_request(options.policy, by)) {
        note(LogEntry{"log_refused", Json::object().set("by", by)});
        return refuse(ErrorKind::refused, objection->code, objection->message);
    }
    if ((*body)["after"].integer() == 0) {  // one line for a look, not one for each second of --follow
        note(LogEntry{"log_read", Json::object().set("by", by)});
    }
    auto counts = Json::object();
    for (const auto& [what, count] : log->counts()) {
        counts.set(what, count);
    }
    const auto traffic = link->traffic();
    auto reply = Json::object()
                     .set("node", enrolment.name)
                     .set("since_unix_s", started_unix_s)
                     .set("bytes_up", traffic.sent)
                     .set("bytes_down", traffic.received)
                     .set("counts", std::move(counts));
    const auto limit =
        static_cast<std::size_t>(std::clamp<std::int64_t>((*body)["lines"].integer(50), 1, max_log_lines));
    const auto after = static_cast<std::uint64_t>(std::max<std::int64_t>(0, (*body)["after"].integer()));
    log->read(
        after, limit, [this, id = request.id, to = connection, reply](const Result<std::vector<Json>>& lines) mutable {
            if (!lines) {
                return link->send(
                    to,
                    Reply{id, true, "", ErrorNotice{lines.error().kind, lines.error().code, "its log cannot be read"}});
            }
            reply.set("lines", Json(*lines));
            link->send(to, Reply{id, true, reply.dump(), std::nullopt});
        });
}

Result<std::unique_ptr<Node>> Node::start(Enrolment enrolment, NodeOptions options) {
    TRY(prepare_process_for_links(16));
    auto parts = std::make_unique<Parts>(std::move(enrolment), std::move(options));
    TRY(parts->start());
    return std::make_unique<Node>(std::move(parts));
}

Node::Node(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Node::~Node() = default;

Status Node::run() {
    return parts_->run();
}
void Node::stop() {
    parts_->queue->push(StopLoop{});
}

}  // namespace causeway::node
