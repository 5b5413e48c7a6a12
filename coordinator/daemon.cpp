// Starting in the order in which things need each other, and ending in the reverse.
#include "coordinator/daemon.h"

#include <fmt/format.h>

#include "common/log.h"
#include "coordinator/backup.h"
#include "coordinator/http.h"
#include "coordinator/http_connections.h"
#include "coordinator/limits.h"
#include "coordinator/loop.h"
#include "coordinator/own_certificate.h"
#include "coordinator/snapshot_check.h"
#include "coordinator/state_files.h"
#include "wire/own_addresses.h"
#include "wire/prepare_process.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t loop_queue_limit = 1 << 16;
constexpr std::size_t link_queue_limit = 4096;
constexpr std::uint64_t largest_served_model = std::uint64_t{64} << 30;
constexpr std::uint64_t updates_in_memory = 640 << 20;      // beyond it they go by the spool
constexpr Duration scrape_limit = std::chrono::seconds(2);  // a turn of the loop takes milliseconds

/// Serves the models to enrolled peers.
BlobSource snapshot_source(const JobRunner& jobs) {
    return [&jobs](const Digest& digest, const PeerIdentity&) { return jobs.model_blob(digest); };
}

/// Each file once at the start: what experiments are checked against when they are submitted.
Result<NamedModels> describe_models(const std::map<std::string, fs::path>& paths) {
    NamedModels models;
    for (const auto& [name, path] : paths) {
        TRY_ASSIGN(const auto file, read_file(path, largest_served_model));
        auto described = describe_named_model(file);
        if (!described) {
            return fail(with_context(described.error(), path.string()));
        }
        models.emplace(name, *std::move(described));
    }
    return models;
}

Need need_of(const DaemonOptions& options) {
    auto need = coordinator_need(options.http ? HttpConnections::descriptors : 0, options.sessions);
    std::error_code ignored;
    need.first_start = !fs::exists(options.state / "coordinator" / "node.crt", ignored);
    return need;
}

/// What the last process fetched and did not add is fetched again: parts stay for resuming, the rest goes.
void clear_spool(const fs::path& spool) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(spool, ignored)) {
        if (entry.path().extension() != ".part") {
            fs::remove(entry.path(), ignored);
        }
    }
}

}  // namespace

struct Daemon::Parts {
    FolderLock lock;
    std::shared_ptr<LoopQueue> queue;
    LinkQueues link_queues;
    std::shared_ptr<Revocations> revocations = std::make_shared<Revocations>();
    std::unique_ptr<Link> link;
    std::unique_ptr<StoreThread> store;
    std::unique_ptr<JobRunner> jobs;
    std::unique_ptr<Admission> admission;
    std::unique_ptr<TransferEngine> transfers;
    std::optional<OwnCertificate> own;
    std::unique_ptr<Loop> loop;
    std::unique_ptr<HttpServer> http;
    Capacity capacity;

    explicit Parts(FolderLock held) : lock(std::move(held)), queue(std::make_shared<LoopQueue>(loop_queue_limit)) {
        link_queues.bulk = std::make_shared<LinkEvents>(link_queue_limit);
        link_queues.take_control = [q = queue](LinkEvent& event) { return offer<LoopQueue, LoopEvent>(*q, event); };
    }
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    ~Parts() {
        queue->close();
        http.reset();
        transfers.reset();
        store.reset();  // it tells the job runner of commits
        jobs.reset();   // it asks the link for its traffic
        link.reset();
    }

    Result<Recovered> open_store(const DaemonOptions& given, const StateFiles& files);
    void keep_certificate(Instant now, std::int64_t unix_s);
    Status start_threads(const DaemonOptions& options, StateFiles& files);
    void start_loop(const DaemonOptions& options, NamedModels models, Recovered recovered);
    Status start_http(const Address& listen);
};

/// The first operator is enrolled like any other, so that it is listed, its name is taken and it can be revoked.
Status adopt_operator(Store& store, const Credentials& credentials) {
    TRY_ASSIGN(const auto record, certificate_record(credentials.identity.node, credentials.identity.role,
                                                     credentials.key.public_key, credentials.certificate));
    return EnrolmentStore(store.database()).adopt(record);
}

/// Whether an experiment went back to an earlier model, for its last one is damaged.
Result<bool> rewind_damaged(Store& store, const fs::path& state, const Recovered& recovered) {
    TRY_ASSIGN(const auto snapshots, Snapshots::open(state));
    const auto whole = [&](const Digest& model) { return snapshots.read(model, largest_served_model).has_value(); };
    const auto all = rewinds(recovered.experiments, whole);
    for (const auto& one : all) {
        const auto why = fmt::format("{} is damaged or gone", snapshots.path(one.lost).string());
        log_warn("coordinator",
                 fmt::format("{}: experiment {} goes back from round {} to the newest model that is whole, that of "
                             "round {}, and its members do the rounds behind it again",
                             why, one.experiment, one.from, one.to));
        snapshots.set_aside(one.lost);
        TRY(store.rewind(one.experiment, one.to, why));
    }
    return !all.empty();
}

Result<Recovered> Daemon::Parts::open_store(const DaemonOptions& given, const StateFiles& files) {
    TRY_ASSIGN(auto opened, Store::open(given.state, {.unix_now = given.unix_now, .must_exist = files.complete}));
    TRY(mark_complete(given.state));
    TRY(adopt_operator(opened, files.first_operator));
    TRY_ASSIGN(auto revoked, EnrolmentStore(opened.database()).revoked());
    revocations->publish(std::move(revoked));
    TRY_ASSIGN(auto recovered, opened.load());
    TRY_ASSIGN(const auto rewound, rewind_damaged(opened, given.state, recovered));
    if (rewound) {
        TRY_ASSIGN(recovered, opened.load());
    }
    StoreThreadOptions options;
    options.stored = [q = queue](std::uint64_t step) { q->push(StepStored{step}); };
    options.stuck = [q = queue](Error why) { q->push(StoreStuck{std::move(why)}); };
    options.broken = [q = queue](Error why) { q->push(StopLoop{std::move(why)}); };
    options.committed = [this](std::set<Digest> named) { jobs->keep_only(std::move(named)); };
    store = std::make_unique<StoreThread>(std::move(opened), std::move(options));
    return recovered;
}

Status Daemon::Parts::start_threads(const DaemonOptions& options, StateFiles& files) {
    LinkOptions link_options{.credentials = files.coordinator, .listen = options.listen};
    link_options.limits.connections = capacity.connections;
    link_options.limits.unauthenticated = capacity.strangers;
    link_options.unix_now = options.unix_now;
    link_options.admit = [q = queue, known = revocations](const PeerIdentity& peer, const std::string& address) {
        if (!known->contains(peer.fingerprint)) {
            return Status();
        }
        LoopEvent refused(SessionRefused{peer, address});
        (void)q->try_push(refused);  // a line of the audit log is not worth holding the link up
        return Status(fail(revoked_error()));
    };
    TRY_ASSIGN(link, Link::start(std::move(link_options), link_queues));
    JobRunnerOptions job_options{
        .state = options.state, .datasets = options.datasets, .models = options.models, .checkers = options.workers};
    job_options.answer = [q = queue](CoordinatorEvent event) { q->push(std::move(event)); };
    job_options.traffic = [this] { return SocketTotals{link->traffic(), link->bulk_traffic()}; };
    job_options.limits = options.limits;
    TRY_ASSIGN(jobs, JobRunner::start(std::move(job_options)));
    TRY_ASSIGN(auto addresses, own_addresses(options.advertise, options.listen, link->port()));
    AdmissionOptions desk{
        .authority = files.authority, .state = options.state, .token_addresses = std::move(addresses)};
    desk.revocations = revocations;
    desk.unix_now = options.unix_now;
    desk.limits = options.limits;
    admission = std::make_unique<Admission>(std::move(desk), *store);
    own.emplace(OwnCertificateOptions{options.state, files.authority, files.coordinator,
                                      [limits = options.limits] { return limits->certificate_lifetime_s.load(); }});
    clear_spool(options.state / "spool");
    clear_staged_backup(options.state);
    // A measurement less is no loss: the engine does not wait for the loop.
    const auto served = [q = queue](const PeerIdentity& reader, std::uint64_t bytes, Duration took) {
        LoopEvent event =
            CoordinatorEvent(LinkMeasured{.node = reader.identity.node, .bytes_down = bytes, .down = took});
        (void)q->try_push(event);
    };
    transfers = std::make_unique<TransferEngine>(*link, link_queues.bulk, snapshot_source(*jobs),
                                                 TransferLimits{.in_memory = updates_in_memory}, served,
                                                 [this](const MovedChunk& chunk) { jobs->note_chunk(chunk); });
    return {};
}

void Daemon::Parts::start_loop(const DaemonOptions& options, NamedModels models, Recovered recovered) {
    for (const auto& experiment : recovered.experiments) {
        jobs->know(experiment.saved);
    }
    CoordinatorOptions machine{.federation = admission->federation(),
                               .max_sessions = capacity.sessions,
                               .sessions_bound = capacity.bound,
                               .sessions_raised_by = capacity.raised_by,
                               .parallel = options.parallel};
    machine.models = std::move(models);
    machine.build = "causeway " CAUSEWAY_VERSION;
    machine.model_path = [this](const Digest& digest) { return jobs->model_path(digest).string(); };
    const auto each_turn = [this, unix_now = options.unix_now, alive = options.alive](Instant now) {
        keep_certificate(now, unix_now());
        if (alive) {
            alive(now);
        }
    };
    loop = std::make_unique<Loop>(
        Coordinator(std::move(machine), std::move(recovered)),
        LoopPartners{*link, *transfers, *store, *jobs, *admission, options.state / "spool", options.limits, each_turn},
        queue);
}

void Daemon::Parts::keep_certificate(Instant now, std::int64_t unix_s) {
    const auto renewed = own->keep(now, unix_s);
    if (!renewed) {
        return;
    }
    if (const auto used = link->use(*renewed); !used) {
        log_error("coordinator", used.error().message);
    }
    if (const auto facts = read_certificate(renewed->certificate)) {
        admission->note_own_renewal(*facts);
    }
}

Status Daemon::Parts::start_http(const Address& listen) {
    const auto scrape = [q = queue]() -> std::optional<CoordinatorMetrics> {
        const auto answer = std::make_shared<BoundedQueue<CoordinatorMetrics>>(1);
        LoopEvent event = ScrapeMetrics{answer};
        return q->try_push(event) ? answer->pop_for(scrape_limit) : std::nullopt;
    };
    TRY_ASSIGN(http, HttpServer::start(listen, scrape));
    return {};
}

Result<std::unique_ptr<Daemon>> Daemon::start(DaemonOptions options) {
    TRY_ASSIGN(auto capacity,
               prepare_process_for_links(need_of(options), read_machine(options.state, options.unix_now())));
    log_info("coordinator",
             fmt::format("serves at most {} nodes and operators at one time: {}", capacity.sessions, capacity.bound));
    TRY_ASSIGN(auto models, describe_models(options.models));
    TRY_ASSIGN(auto files,
               open_state(options.state, {.federation = options.federation,
                                          .authority = options.authority,
                                          .now_s = options.unix_now(),
                                          .certificate_lifetime_s = options.limits->certificate_lifetime_s}));
    auto parts = std::make_unique<Parts>(std::move(files.lock));
    parts->capacity = std::move(capacity);
    TRY_ASSIGN(auto recovered, parts->open_store(options, files));
    TRY(parts->start_threads(options, files));
    TRY(write_operator_address(options.state, options.listen, parts->link->port()));
    parts->start_loop(options, std::move(models), std::move(recovered));
    if (options.http) {
        TRY(parts->start_http(*options.http));
    }
    return std::make_unique<Daemon>(std::move(parts));
}

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Daemon::~Daemon() = default;

std::uint16_t Daemon::port() const {
    return parts_->link->port();
}
std::uint16_t Daemon::http_port() const {
    return parts_->http ? parts_->http->port() : std::uint16_t{0};
}
const std::string& Daemon::federation() const {
    return parts_->admission->federation();
}
Status Daemon::run() {
    return parts_->loop->run();
}
void Daemon::stop() {
    parts_->queue->push(StopLoop{});
}

}  // namespace causeway
