// The engine's thread: link events and commands to the two tables.
#include "wire/transfer_engine.h"

#include <thread>

#include "common/listening_clock.h"
#include "common/queue.h"
#include "wire/transfer_tables.h"

namespace causeway {
namespace {

constexpr std::size_t transfer_command_limit = 65'536;
constexpr Duration transfer_turn = std::chrono::milliseconds(100);  // of the clock-driven checks
constexpr Duration first_retry = std::chrono::milliseconds(200);  // of a lost bulk connection
constexpr Duration longest_retry = std::chrono::seconds(5);
constexpr Duration idle_limit = std::chrono::seconds(30);  // a connection costs the other side 57 KB

struct AttachTransfer {
    ConnectionId control = 0;
    std::optional<Address> coordinator;  // none: the other side connects
    std::uint64_t session = 0;
};
struct WantCommand {
    ConnectionId control = 0;
};
struct DetachTransfer {
    ConnectionId control = 0;
};
struct FetchCommand {
    ConnectionId control = 0;
    Fetch fetch;
    FetchDone done;
};
struct CancelCommand {
    ConnectionId control = 0;
    Digest digest;
};
/// Of the writer's thread, to the table.
struct AnswerCommand {
    std::function<void(Instant)> answer;
};
using TransferCommand =
    std::variant<AttachTransfer, WantCommand, DetachTransfer, FetchCommand, CancelCommand, AnswerCommand>;

/// A bulk connection that we keep open for our session while it is of use.
struct Attachment {
    Address coordinator;
    std::uint64_t session = 0;
    ConnectionId connection = 0;  // 0: none at the moment
    Instant retry_at = never;     // of the next attempt; never: none is wanted
    Duration retry = first_retry;
    Instant used_at{};
};

}  // namespace

struct TransferEngine::State {
    Link& link;
    std::shared_ptr<LinkEvents> events;
    TransferSink sink;
    ServingTable serving;
    std::unique_ptr<WorkThread> writer;
    FetchTable fetches;
    std::map<ConnectionId, Attachment> attachments;  // by control connection
    BoundedQueue<TransferCommand> commands{transfer_command_limit};
    std::atomic<bool> stopping{false};
    ListeningClock clock{real_now()};
    Instant next_tick{};
    std::thread thread;

    State(Link& used_link, std::shared_ptr<LinkEvents> bulk_events, BlobSource source, TransferLimits limits,
          ServedBlob served, ChunkMoved moved)
        : link(used_link),
          events(std::move(bulk_events)),
          sink{[this](ConnectionId to, Message message) { link.send(to, std::move(message)); },
               [this](ConnectionId which, Error why) { link.close(which, std::move(why)); }, std::move(moved)},
          serving(sink, std::move(source), limits, std::move(served)),
          writer(std::make_unique<WorkThread>()),
          fetches(sink,
                  {*writer, [this](std::function<void(Instant)> answer) { put(AnswerCommand{std::move(answer)}); }},
                  limits) {}

    void put(TransferCommand command) {
        put_later(std::move(command));
        LinkEvent wake = PeerHeard{};  // of no connection: ends the wait for events
        (void)events->try_push(wake);  // a full queue wakes by itself
    }
    /// Before whatever is put after it, but without waking the thread.
    void put_later(TransferCommand command) { commands.push(std::move(command)); }

    // ---- attachments
    void dial(ConnectionId control, Attachment& attachment) {
        attachment.retry_at = never;
        attachment.connection = link.connect({.to = attachment.coordinator,
                                              .kind = ConnectionKind::bulk,
                                              .control = control,
                                              .session = attachment.session});
    }
    /// Tried again ever more slowly while the session lives; the owner's detach ends it.
    void redial(ConnectionId lost, Instant now) {
        for (auto& [control, attachment] : attachments) {
            if (attachment.connection == lost) {
                attachment.connection = 0;
                attachment.retry_at = now - attachment.used_at < idle_limit ? now + attachment.retry : never;
                attachment.retry = std::min(2 * attachment.retry, longest_retry);
            }
        }
    }
    void detach(ConnectionId control, Instant now) {
        if (const auto found = attachments.find(control); found != attachments.end()) {
            if (found->second.connection != 0) {
                link.close(found->second.connection, bye("the session has ended"));
            }
            attachments.erase(found);
        }
        fetches.detach(control, now);
    }

    void want(ConnectionId control, Instant now) {
        if (const auto found = attachments.find(control); found != attachments.end()) {
            auto& attachment = found->second;
            attachment.used_at = now;
            if (attachment.connection == 0 && attachment.retry_at == never) {
                dial(control, attachment);
            }
        }
    }
    void note_use(ConnectionId connection, Instant now) {
        for (auto& [control, attachment] : attachments) {
            attachment.used_at = attachment.connection == connection ? now : attachment.used_at;
        }
    }

    // ---- commands and events
    void execute(TransferCommand&& command, Instant now) {
        if (auto* attaching = std::get_if<AttachTransfer>(&command)) {
            fetches.attach(attaching->control);
            if (attaching->coordinator) {
                attachments[attaching->control] = {.coordinator = *std::move(attaching->coordinator),
                                                   .session = attaching->session};
            }
        } else if (const auto* wanting = std::get_if<WantCommand>(&command)) {
            want(wanting->control, now);
        } else if (auto* detaching = std::get_if<DetachTransfer>(&command)) {
            detach(detaching->control, now);
        } else if (auto* fetching = std::get_if<FetchCommand>(&command)) {
            want(fetching->control, now);
            fetches.add(fetching->control, std::move(fetching->fetch), std::move(fetching->done), now);
        } else if (const auto* cancelling = std::get_if<CancelCommand>(&command)) {
            fetches.cancel(cancelling->control, cancelling->digest, now);
        } else if (const auto* answering = std::get_if<AnswerCommand>(&command)) {
            answering->answer(now);
        }
    }
    /// Events of one connection come in order; PeerOpened is the first and PeerClosed the last.
    void handle(LinkEvent&& event, Instant now) {
        if (auto* opened = std::get_if<PeerOpened>(&event)) {
            serving.opened(opened->connection, opened->peer.value_or(PeerIdentity{}));
            fetches.opened(opened->connection, opened->control, now);
            if (const auto found = attachments.find(opened->control); found != attachments.end()) {
                found->second.retry = first_retry;
            }
        } else if (auto* closed = std::get_if<PeerClosed>(&event)) {
            serving.closed(closed->connection);
            fetches.closed(closed->connection, now);
            redial(closed->connection, now);
        } else if (auto* sent = std::get_if<PeerSent>(&event)) {
            note_use(sent->connection, now);
            serving.sent(sent->connection, sent->chunks);
        } else if (auto* message = std::get_if<PeerMessage>(&event)) {
            note_use(message->connection, now);
            handle_message(message->connection, std::move(message->message), now);
        }
    }
    void handle_message(ConnectionId connection, Message&& message, Instant now) {
        if (auto* chunk = std::get_if<Chunk>(&message)) {
            fetches.chunk(connection, std::move(*chunk), now);
        } else if (const auto* credit = std::get_if<Credit>(&message)) {
            serving.credit(connection, *credit, now);
        } else if (const auto* pull = std::get_if<Pull>(&message)) {
            serving.pull(connection, *pull, now);
        } else if (const auto* end = std::get_if<TransferEnd>(&message)) {
            end->by_receiver ? serving.end(connection, *end, now) : fetches.end(connection, *end, now);
        }
    }
    void tick(Instant now) {
        if (now < next_tick) {
            return;
        }
        next_tick = now + transfer_turn;
        serving.tick(now);
        fetches.tick(now);
        for (auto& [control, attachment] : attachments) {
            if (attachment.connection == 0 && now >= attachment.retry_at) {
                dial(control, attachment);
            } else if (attachment.connection != 0 && now - attachment.used_at > idle_limit) {
                link.close(std::exchange(attachment.connection, 0), bye("nothing moves"));
            }
        }
    }

    /// One event, then all commands, then the clock: an event wait is ended by a command (see put).
    void run() {
        while (!stopping.load(std::memory_order_relaxed)) {
            auto event = events->pop_for(transfer_turn);
            (void)clock.turn(real_now());  // what waits for its reader was not slow while we stood still
            const auto now = clock.now();
            while (auto command = commands.try_pop()) {
                execute(std::move(*command), now);
            }
            if (event) {
                handle(std::move(*event), now);
            }
            tick(now);
        }
        writer.reset();  // what has come is written: a part for the next start
        commands.close();
        while (auto command = commands.try_pop()) {
            execute(std::move(*command), clock.now());
        }
        fetches.fail_all({ErrorKind::disconnected, "stopped", "the program stops"});
    }
};

TransferEngine::TransferEngine(Link& link, std::shared_ptr<LinkEvents> events, BlobSource source, TransferLimits limits,
                               ServedBlob served, ChunkMoved moved)
    : state_(std::make_unique<State>(link, std::move(events), std::move(source), limits, std::move(served),
                                     std::move(moved))) {
    state_->thread = std::thread([state = state_.get()] { state->run(); });
}

TransferEngine::~TransferEngine() {
    state_->stopping.store(true, std::memory_order_relaxed);
    LinkEvent wake = PeerHeard{};
    (void)state_->events->try_push(wake);
    state_->thread.join();
    state_->events->close();  // the link must not wait for us
}

void TransferEngine::attach(ConnectionId control, Address coordinator, std::uint64_t session) {
    state_->put_later(AttachTransfer{control, std::move(coordinator), session});
}
void TransferEngine::attach(ConnectionId control) {
    state_->put_later(AttachTransfer{control, std::nullopt, 0});
}
void TransferEngine::want(ConnectionId control) {
    state_->put(WantCommand{control});
}
void TransferEngine::detach(ConnectionId control) {
    state_->put(DetachTransfer{control});
}
void TransferEngine::fetch(ConnectionId control, Fetch fetch, FetchDone done) {
    state_->put(FetchCommand{control, std::move(fetch), std::move(done)});
}
void TransferEngine::cancel(ConnectionId control, const Digest& digest) {
    state_->put(CancelCommand{control, digest});
}

}  // namespace causeway
