// The link thread: commands in, sockets, core, events out.
#include "wire/link.h"

#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

#include "common/large_memory.h"
#include "common/log.h"
#include "wire/burst.h"
#include "wire/link_core.h"
#include "wire/shared_traffic.h"
#include "wire/sockets.h"

namespace causeway {
namespace {

constexpr std::size_t link_command_limit = 65'536;        // owners wait when the link is that far behind
constexpr std::size_t backlog_limit = 64;                 // events that an owner has not taken: we stop reading
constexpr Duration again = std::chrono::milliseconds(1);  // an owner's queue was full, and nothing says when it is not
constexpr Duration stall = std::chrono::milliseconds(300);  // a turn that took longer says nothing about peers
constexpr int most_listened_turns = 64;  // who keeps talking keeps nobody from being heard out
constexpr Duration last_words = std::chrono::milliseconds(500);
constexpr Duration quiet_time = std::chrono::seconds(1);
constexpr std::size_t crowd = 100;                       // connections: below, heartbeats cost nothing that counts
constexpr Duration nap = std::chrono::milliseconds(10);  // one wake-up for many heartbeats
constexpr Duration spare_time = std::chrono::seconds(10);  // large memory that rounds have not wanted for so long

struct DialCommand {
    ConnectionId connection = 0;
    ConnectOptions options;
};
struct SendMessage {
    std::vector<AddressedMessage> messages;
};
struct CloseCommand {
    ConnectionId connection = 0;
    Error why;
};
struct PaceCommand {
    ConnectionId connection = 0;
    Pace pace = Pace::idle;
};
struct UseCommand {
    ChannelContexts contexts;
};
struct AllowCommand {
    std::vector<StreamPeer> peers;
};
struct RelaysCommand {
    std::vector<RelayPair> pairs;
};
struct RelayUseCommand {
    std::shared_ptr<BoundedQueue<std::vector<RelayUse>>> answer;
};
struct ListenCommand {};
struct StopCommand {};
using LinkCommand = std::variant<DialCommand, SendMessage, CloseCommand, PaceCommand, UseCommand, AllowCommand,
                                 RelaysCommand, RelayUseCommand, ListenCommand, StopCommand>;

LinkEnd end_of(const std::optional<Credentials>& credentials) {
    return credentials && credentials->identity.role != Role::coordinator ? LinkEnd::node : LinkEnd::coordinator;
}

/// Both ends of a process's handshakes; the accepting one only where it listens.
Result<ChannelContexts> make_contexts(const std::optional<Credentials>& credentials, bool listens) {
    ChannelContexts contexts;
    if (credentials && end_of(credentials) == LinkEnd::node) {
        TRY_ASSIGN(contexts.accepting, ChannelContext::accepting_nodes(*credentials));
        TRY_ASSIGN(contexts.to_nodes, ChannelContext::connecting_to_nodes(*credentials));
    } else if (credentials && listens) {
        TRY_ASSIGN(contexts.accepting, ChannelContext::accepting(*credentials));
    }
    if (credentials) {
        TRY_ASSIGN(contexts.connecting, ChannelContext::connecting(*credentials));
    }
    return contexts;
}

ConnectionId connection_of(const LinkEvent& event) {
    return std::visit([](const auto& e) { return e.connection; }, event);
}

}  // namespace

struct Link::State final : LinkPort {
    SocketContext context;
    LinkOptions options;
    LinkQueues queues;
    std::unique_ptr<Listener> listener;
    std::map<ConnectionId, Dialled> dialled;
    std::optional<LinkCore> core;
    std::atomic<ConnectionId> next_id{1};
    BoundedQueue<LinkCommand> commands{link_command_limit};
    int wake = -1;  // an eventfd: written after a command when the thread waits
    std::atomic<bool> waits{false};
    std::vector<pollfd> polled;
    std::map<ConnectionId, LinkEvents*> queue_of_connection;  // those whose events do not go to the control queue
    std::deque<LinkEvent> backlog;                            // not taken by their queue yet
    std::optional<int> listened;                              // asked: turns that have read since
    SharedTraffic traffic;
    SharedTraffic stream_traffic;
    SharedTraffic bulk_traffic;
    std::uint16_t port = 0;
    bool listens = false;
    Burst moved_bytes{.little = quiet_bytes, .much = burst_bytes, .pause = quiet_time};
    Burst ended_connections{.little = 0, .much = some_gone, .pause = gone_time, .too_much = many_gone};
    Instant before{};  // of the last turn
    Instant spare_looked_at{};
    bool stopping = false;
    Instant stop_at = never;
    std::thread thread;

    ~State() override {
        if (wake >= 0) {
            ::close(wake);
        }
    }

    enum class Wake { yes, no };
    void put(LinkCommand command, Wake wanted = Wake::yes) {
        // The thread says that it waits before it looks for commands a last time: one of the two sees the other.
        if (commands.push(std::move(command)) && wanted == Wake::yes && waits.exchange(false)) {
            const std::uint64_t one = 1;
            (void)!::write(wake, &one, sizeof(one));
        }
    }

    // ---- LinkPort
    Sent send(ConnectionId connection, Bytes& frame) override {
        const auto found = dialled.find(connection);
        if (found != dialled.end()) {
            return found->second.send(frame);
        }
        return listener ? listener->send(connection, frame) : Sent::gone;
    }
    void expel(ConnectionId connection) override {
        if (dialled.contains(connection)) {
            ended.push_back(connection);  // closed after this turn: it may be the one being read
        } else if (listener) {
            listener->expel(connection);
        }
    }
    ConnectionId new_connection() override { return next_id++; }
    std::vector<ConnectionId> ended;

    // ---- commands
    void dial(const DialCommand& command, Instant now) {
        const auto id = command.connection;
        note_queue(id, command.options.kind);
        if (command.options.via != 0) {
            core->dial(id, command.options, now, options.unix_now());
            return;
        }
        auto& made = dialled.try_emplace(id, context, id).first->second;
        core->dial(id, command.options, now, options.unix_now());
        if (const auto connected = made.connect(command.options.to); !connected) {
            core->lose(id, connected.error());
        }
    }
    void execute(LinkCommand&& command, Instant now) {
        if (auto* dialling = std::get_if<DialCommand>(&command)) {
            dial(*dialling, now);
        } else if (auto* sending = std::get_if<SendMessage>(&command)) {
            for (auto& one : sending->messages) {
                core->send(one.connection, std::move(one.message));
            }
        } else if (auto* closing = std::get_if<CloseCommand>(&command)) {
            core->close(closing->connection, std::move(closing->why));
        } else if (auto* pacing = std::get_if<PaceCommand>(&command)) {
            core->set_pace(pacing->connection, pacing->pace);
        } else if (auto* using_ = std::get_if<UseCommand>(&command)) {
            core->use(std::move(using_->contexts));
        } else if (auto* allowing = std::get_if<AllowCommand>(&command)) {
            core->allow_streams(std::move(allowing->peers));
        } else if (auto* relaying = std::get_if<RelaysCommand>(&command)) {
            core->allow_relays(std::move(relaying->pairs));
        } else if (const auto* asked = std::get_if<RelayUseCommand>(&command)) {
            asked->answer->push(core->relay_use());
        } else if (std::holds_alternative<ListenCommand>(command)) {
            listened = 0;
        } else if (!stopping) {
            stopping = true;
            stop_at = now + last_words;
            core->close_all(bye("the program stops"));
        }
    }
    /// All that have come: they are cheap, and their queue is bounded.
    void take_commands(Instant now) {
        for (std::size_t i = 0; i < link_command_limit; ++i) {
            auto command = commands.try_pop();
            if (!command) {
                return;
            }
            execute(std::move(*command), now);
        }
    }

    // ---- events
    void note_queue(ConnectionId connection, ConnectionKind kind) {
        if (kind == ConnectionKind::bulk) {
            queue_of_connection[connection] = queues.bulk.get();
        } else if (kind == ConnectionKind::stream || kind == ConnectionKind::relay) {
            queue_of_connection[connection] = queues.streams.get();
        }
    }
    /// To its owner's queue; events of bulk and stream connections have their own. False when that is full.
    bool hand_out(LinkEvent& event) {
        const auto id = connection_of(event);
        const auto* said = std::get_if<PeerMessage>(&event);
        if (said && std::holds_alternative<RelayOpen>(said->message)) {  // a node's relay connection is wanted
            return !queues.streams || queues.streams->try_push(event);
        }
        if (const auto* opened = std::get_if<PeerOpened>(&event)) {
            note_queue(id, opened->kind);
        }
        if (const auto own = queue_of_connection.find(id); own != queue_of_connection.end()) {
            return !own->second || own->second->try_push(event);
        }
        return queues.take_control ? queues.take_control(event) : queues.control->try_push(event);
    }
    /// Never waits for an owner: what does not fit stays here, and while much stays nothing is read.
    void hand_out_events() {
        for (auto& event : core->take_events()) {
            backlog.push_back(std::move(event));
        }
        if (heard_out()) {
            listened.reset();
            backlog.emplace_back(PeersRead{});
        }
        while (!backlog.empty()) {
            const auto id = connection_of(backlog.front());
            const bool ends = std::holds_alternative<PeerClosed>(backlog.front());
            if (!hand_out(backlog.front()) && !stopping) {
                return;  // full: again next turn
            }
            backlog.pop_front();
            if (ends) {
                queue_of_connection.erase(id);
            }
        }
    }

    // ---- sockets
    void read_sockets(Instant now) {
        const auto unix_s = options.unix_now();
        if (listener) {
            listener->read(*core, next_id, now, unix_s);
            listener->expel_hoarders(*core, now);
        }
        for (auto& entry : dialled) {
            entry.second.read(*core, now, unix_s);
        }
    }
    /// What came before the question was there for a wait after it, and that turn or a later one has read all of it.
    bool heard_out() {
        if (!listened || backlog.size() >= backlog_limit || ++*listened < 2) {
            return false;
        }
        bool more = false;
        for_sockets(true, [&](MonitoredSocket& socket) { more = socket.has_more() || more; });
        return !more || *listened >= most_listened_turns;
    }
    void close_ended() {
        for (const auto id : std::exchange(ended, {})) {
            dialled.erase(id);
        }
    }
    /// Calls `each` for all sockets that are to be read, always in the same order.
    template <class Each>
    void for_sockets(bool reading, const Each& each) {
        if (reading && listener) {
            each(listener->socket());
        }
        for (auto& entry : dialled) {
            if (reading) {
                each(entry.second.socket());
            }
        }
    }
    /// Until a command, a frame, a monitor event or the next deadline. A pipe that was full and has room again signals
    /// its socket's descriptor too. One system call a turn: zmq_poll takes two for each socket.
    void wait(bool reading) {
        if (core->size() >= crowd && before - moved_bytes.quiet_since > quiet_time && backlog.empty()) {
            take_a_nap();
        }
        polled.assign(1, {wake, POLLIN, 0});
        bool more = false;
        for_sockets(reading, [&](MonitoredSocket& socket) {
            more = socket.has_more() || more;
            polled.push_back({socket.descriptor(), POLLIN, 0});
            polled.push_back({socket.monitor_descriptor(), POLLIN, 0});
        });
        waits = true;
        more = more || commands.size() > 0 || listened;
        const auto patience = backlog.empty() ? std::clamp<Duration>(core->due() - real_now(), {}, stall / 2) : again;
        const timespec limit{0, more ? 0 : std::chrono::duration_cast<std::chrono::nanoseconds>(patience).count()};
        ::ppoll(polled.data(), polled.size(), &limit, nullptr);
        waits = false;
        if (polled[0].revents != 0) {
            std::uint64_t count = 0;
            (void)!::read(wake, &count, sizeof(count));
        }
        std::size_t at = 1;
        for_sockets(reading, [&](MonitoredSocket& socket) {
            if (polled[at++].revents != 0) {
                socket.look_again();
            }
            if (polled[at++].revents != 0) {
                socket.look_at_monitor();
            }
        });
    }

    /// Of a crowd at rest: what comes within the nap is read in one turn. Commands end it.
    void take_a_nap() {
        waits = true;
        pollfd command{wake, POLLIN, 0};
        const auto patience =
            commands.size() > 0 ? Duration{} : std::clamp<Duration>(core->due() - real_now(), {}, nap);
        const timespec limit{0, std::chrono::duration_cast<std::chrono::nanoseconds>(patience).count()};
        ::ppoll(&command, 1, &limit, nullptr);
    }

    /// Handshakes and chunks leave free pages behind; when a burst is over they go back to the system. So do those of a
    /// crowd that comes and goes, at once: strangers say too little to be a burst.
    void give_memory_back(Instant now) {
        if (now - spare_looked_at > quiet_time) {
            spare_looked_at = now;
            give_back_spare_memory(spare_time);
        }
        const bool many_ended = ended_connections.is_over(now, listener ? listener->ended_so_far() : 0);
        const bool much_moved = moved_bytes.is_over(now, core->traffic().received + core->traffic().sent);
        if (many_ended || much_moved) {
            malloc_trim(0);
        }
    }

    /// One turn: wait, commands, frames in, time, frames out, events out. `now` stands still within it.
    void run() {
        before = real_now();
        while (!stopping || (!core->empty() && real_now() < stop_at)) {
            const bool reading = backlog.size() < backlog_limit;
            wait(reading);
            const auto now = real_now();
            if (now - before > stall) {
                core->forgive(now - before);
            } else if (!reading) {
                core->forgive(now - before);  // we do not look: nobody can be heard
            }
            before = now;
            take_commands(now);
            if (reading) {
                read_sockets(now);
            }
            core->tick(now);
            core->flush(now);
            hand_out_events();
            close_ended();
            give_memory_back(now);
            traffic.store(core->traffic());
            stream_traffic.store(core->stream_traffic());
            bulk_traffic.store(core->bulk_traffic());
        }
        commands.close();
        while (auto command = commands.try_pop()) {
            if (const auto* asked = std::get_if<RelayUseCommand>(&*command)) {
                asked->answer->close();
            }
        }
        dialled.clear();
        listener.reset();
    }
};

Link::Link(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Link>> Link::start(LinkOptions options, LinkQueues queues) {
    ASSERT(queues.control != nullptr || queues.take_control);
    TRY_ASSIGN(auto contexts, make_contexts(options.credentials, options.listen.has_value()));
    auto state = std::make_unique<State>();
    if (options.listen) {
        const bool serves_all = options.credentials && options.credentials->identity.role == Role::coordinator;
        const int frames = serves_all ? coordinator_frames : node_frames;
        TRY_ASSIGN(state->listener, Listener::open(state->context, *options.listen, frames));
        state->port = state->listener->port();
        state->listens = true;
    }
    state->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (state->wake < 0) {
        return fail(ErrorKind::io, "too_few_descriptors", "no descriptor is left: raise `ulimit -n`");
    }
    if (!queues.bulk) {
        options.limits.bulk_per_session = 0;
    }
    state->core.emplace(options.limits, std::move(contexts), *state, options.admit, end_of(options.credentials));
    state->options = std::move(options);
    state->queues = std::move(queues);
    auto* raw = state.get();
    state->thread = std::thread([raw] { raw->run(); });
    return std::make_unique<Link>(std::move(state));
}

Link::~Link() {
    state_->put(StopCommand{});
    state_->thread.join();
}

std::uint16_t Link::port() const {
    return state_->port;
}

ConnectionId Link::connect(ConnectOptions options) {
    const auto id = state_->next_id++;
    state_->put(DialCommand{id, std::move(options)});
    return id;
}
void Link::send(ConnectionId connection, Message message) {
    std::vector<AddressedMessage> messages;
    messages.push_back({connection, std::move(message)});
    send(std::move(messages));
}
void Link::send(std::vector<AddressedMessage> messages) {
    state_->put(SendMessage{std::move(messages)});
}
void Link::close(ConnectionId connection, Error why) {
    state_->put(CloseCommand{connection, std::move(why)});
}
void Link::set_pace(ConnectionId connection, Pace pace) {
    state_->put(PaceCommand{connection, pace}, State::Wake::no);  // within a turn's patience is soon enough
}

void Link::listen() {
    state_->put(ListenCommand{});
}

void Link::allow_streams(std::vector<StreamPeer> peers) {
    state_->put(AllowCommand{std::move(peers)});
}

void Link::allow_relays(std::vector<RelayPair> pairs) {
    state_->put(RelaysCommand{std::move(pairs)});
}

std::vector<RelayUse> Link::relay_use() const {
    auto answer = std::make_shared<BoundedQueue<std::vector<RelayUse>>>(1);
    state_->put(RelayUseCommand{answer});
    return answer->pop().value_or(std::vector<RelayUse>());
}

Status Link::use(const Credentials& credentials) {
    TRY_ASSIGN(auto contexts, make_contexts(credentials, state_->listens));
    state_->put(UseCommand{std::move(contexts)});
    return {};
}

Traffic Link::traffic() const {
    return state_->traffic.load();
}
Traffic Link::stream_traffic() const {
    return state_->stream_traffic.load();
}
Traffic Link::bulk_traffic() const {
    return state_->bulk_traffic.load();
}

}  // namespace causeway
