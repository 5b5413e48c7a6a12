// The loop: what other threads tell becomes the machine's events, the machine's effects become their work.
#include "client/node.h"

#include <algorithm>
#include <variant>

#include "client/declarations.h"
#include "client/node_parts.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/overloaded.h"
#include "common/random.h"
#include "wire/error_notice.h"
#include "wire/own_addresses.h"
#include "wire/prepare_process.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

constexpr Duration settle_interval = std::chrono::seconds(1);
/// Words of the coordinator after which trying again is useless: any refusal of the first session, and later on the one
/// that no waiting mends.
bool is_final(const Error& why, bool welcomed) {
    return welcomed ? why.code == "revoked" : why.kind == ErrorKind::refused || why.code == "identity_in_use";
}

}  // namespace

Status Node::Parts::start() {
    TRY_ASSIGN(log, NodeLog::open(options.state));
    TRY_ASSIGN(files, NodeFiles::open(options.state, options.limits));
    TRY(make_private_folder(options.state / "downloads"));
    TRY(make_private_folder(options.state / "downloads" / "evaluation"));
    TRY_ASSIGN(auto device, Device::open(options.device, {.threads = options.threads}));
    SessionOptions session_options{.node = enrolment.name, .software = "causeway " CAUSEWAY_VERSION};
    session_options.compute_signature = "causeway " CAUSEWAY_VERSION " " + device.signature();
    TRY_ASSIGN(session_options.datasets,
               declarations_of(options.datasets, options.policy,
                               [&](const DatasetDeclaration& told, std::uint64_t skipped) {
                                   // Numbers only: names of files are the node's own.
                                   log->add({"skipped", Json::object()
                                                            .set("dataset", told.name)
                                                            .set("entries", skipped)
                                                            .set("examples", told.examples)});
                               }));
    TRY_ASSIGN(session_options.held, files->load_held());
    session_options.experiments = files->kept();
    session_options.jitter_seed = node_key(enrolment.name);
    session_options.policy = [this, bf16 = device.check(Compute::bf16)](
                                 const Assign& assign, Asked asked) -> std::optional<Objection> {
        if (auto objection = judge(options.policy, assign, asked, options.local_now())) {
            return objection;
        }
        // An evaluation has no program; what is wrong with its texts shows when it is done.
        const auto status = asked == Asked::figures  ? Status()
                            : assign.segment.empty() ? check_assignment(assign, bf16)
                                                     : check_cell(assign, bf16);
        return status ? std::nullopt : std::optional(Objection{status.error().code, status.error().message});
    };
    session_options.splits = options.policy.allow_split;
    session_options.memory = options.memory > 0 ? options.memory : available_memory().value_or(0);
    trainer = std::make_unique<NodeTrainer>(enrolment.name, std::move(device), options.datasets,
                                            NodeTrainer::Means{options.memory, options.slow});
    TRY(start_link());
    if (enrolment.role == Role::host) {
        TRY_ASSIGN(const auto addresses, own_addresses(options.advertise, options.listen, link->port()));
        for (const auto& address : addresses) {
            session_options.addresses.push_back(address.text());
        }
    }
    session = std::make_unique<Session>(std::move(session_options));
    return {};
}

Status Node::Parts::start_link() {
    TRY_ASSIGN(auto credentials, load_credentials(options.state / "node"));
    renewal.emplace(options.state / "node", credentials);
    LinkOptions link_options{.credentials = std::move(credentials), .unix_now = options.unix_now};
    if (enrolment.role == Role::host) {
        link_options.listen = options.listen;
    }
    TRY_ASSIGN(link, Link::start(std::move(link_options), link_queues));
    const auto source = [this](const Digest& digest, const PeerIdentity& reader) -> Result<Blob> {
        if (reader.identity.role != Role::coordinator) {
            return fail(ErrorKind::refused, "not_for_you", "updates are for the coordinator only");
        }
        auto bytes = files->held_bytes(digest);
        return bytes ? Result<Blob>(std::move(bytes))
                     : fail(ErrorKind::not_found, "not_found", "no update " + digest.short_hex() + " is held here");
    };
    transfers = std::make_unique<TransferEngine>(*link, link_queues.bulk, source);
    TRY(start_streams());
    return {};
}

Status Node::Parts::run() {
    auto real = real_now();
    clock = ListeningClock(real);
    now = clock.now();
    take(session->start(now));
    while (true) {
        // Until wake_at; once the link is asked to hear the coordinator out, until its answer.
        const auto due = listens ? never : clock.real_at(wake_at);
        const auto event =
            queue->pop_for(std::clamp<Duration>(due - real, Duration::zero(), ListeningClock::longest_wait));
        real = real_now();
        (void)clock.turn(real);
        now = std::max(now, clock.before(wake_at));
        if (real >= settle_at) {
            settle_at = real + settle_interval;
            files->settle();
            if (session->working() || session->holds() || rostered) {
                transfers->want(connection);  // what is held here, the coordinator pulls when it has room
            }
        }
        if (options.alive) {
            options.alive(real);
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
        if (clock.now() >= wake_at && !listens) {
            listens = true;
            link->listen();
        }
        keep_certificate();
    }
}

/// What the coordinator said before the deadline, also while this process stood still, has been handled.
void Node::Parts::be_woken() {
    listens = false;
    now = std::max(now, clock.now());
    step(Tick{});
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
    for (const auto& persist : persists) {
        if (const auto* over = std::get_if<ForgetExperiment>(&persist)) {
            trainer->forget(over->experiment);
        }
    }
    const auto number = effects.push(std::move(made), !persists.empty());
    if (!persists.empty()) {
        files->apply(std::move(persists), [q = queue, number] { q->push(StepStored{number}); });
    }
    release();
}

void Node::Parts::release() {
    while (auto step = effects.pop()) {
        std::vector<AddressedMessage> messages;
        for (auto& message : step->send) {
            note(entry_of_said(message));
            messages.push_back({connection, std::move(message)});
        }
        if (!messages.empty()) {
            link->send(std::move(messages));
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
                          [this](const StopTraining&) { trainer->stop(); }, [this](const Evaluate& j) { evaluate(j); },
                          [this](const RunTurn& j) { run_turn(j); },
                          [this](const StopTurn& j) { trainer->stop_turn(j.lease); },
                          [this](const LetGo& j) { files->let_go(j.segment); }},
               job);
}

void Node::Parts::connect() {
    connection = link->connect({.to = address()});
    link->set_pace(connection, Pace::idle);
}

void Node::Parts::on(const StepStored& event) {
    effects.stored(event.step);
    release();
}

// ---------------------------------------------------------------- link

void Node::Parts::on(const LinkEvent& event) {
    const auto closed = [this](const PeerClosed& e) {
        if (e.connection == connection) {
            rostered = false;
            ++attempts;  // the next address, where there are several
            transfers->detach(e.connection);
            streams->detach(e.connection);
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
            streams->attach(connection, address(), welcome->session);
        }
        if (const auto* roster = std::get_if<Roster>(&e.message)) {
            auto known = *roster;
            std::erase_if(known.entries, [this](const RosterEntry& entry) {
                if (streams_with(enrolment.role, entry.role)) {
                    return false;
                }
                log_warn("streams", "the roster has " + entry.node + " as " + entry.role + ": nothing goes there");
                return true;
            });
            for (auto& entry : known.entries) {
                if (const auto there = options.reach.find(entry.node); there != options.reach.end()) {
                    entry.addresses = {there->second};
                }
            }
            // Whoever may stream has a turn soon: nothing of it shall wait for a connection to be made.
            rostered = !known.entries.empty();
            if (rostered) {
                transfers->want(connection);
            }
            return streams->roster(known, real_now());
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
        // What concerns an experiment is the machine's; what is left is about the node itself.
        if (const auto* request = std::get_if<Request>(&e.message); request && request->verb != "evaluate") {
            return answer(*request);
        }
        if (const auto* committed = std::get_if<Committed>(&e.message);
            committed && committed->audit_head != Digest{}) {
            files->note_audit_head(enrolment.federation, committed->audit_head);
        }
        note(entry_of_heard(e.message));
        step(MessageReceived{e.message});
    };
    std::visit(Overloaded{[this](const PeerOpened& e) {
                              if (e.connection == connection) {
                                  step(Connected{});
                              }
                          },
                          closed, message, [](const PeerSilent&) {}, [](const PeerHeard&) {}, [](const PeerSent&) {},
                          [](const PeerMeasured&) {}, [this](const PeersRead&) { be_woken(); }},
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
    const auto refuse = [&](const Error& why) { link->send(connection, Reply{request.id, true, "", notice_of(why)}); };
    const auto body = Json::parse(request.body, max_request_bytes);
    if (request.verb != "node.log" || !body) {
        return refuse({ErrorKind::unsupported, "unknown_verb", "this node has no \"" + request.verb + "\""});
    }
    const auto by = (*body)["by"].text();
    if (const auto objection = judge_log_request(options.policy, by)) {
        note(LogEntry{"log_refused", Json::object().set("by", by)});
        return refuse({ErrorKind::refused, objection->code, objection->message});
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
    TRY(prepare_process_for_links(node_need(), read_machine(options.state, options.unix_now())));
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
