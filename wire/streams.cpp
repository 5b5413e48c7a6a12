// The streams' thread: link events and the owner's commands to the table.
#include "wire/streams.h"

#include <thread>

#include "common/queue.h"
#include "wire/stream_table.h"

namespace causeway {
namespace {

constexpr std::size_t stream_command_limit = 65'536;
constexpr Duration stream_turn =
    std::chrono::milliseconds(50);  // of what depends on time alone; messages never wait for it

struct RosterCommand {
    Roster roster;
    Instant at{};
};
struct SendPiece {
    std::string node;
    StreamData message;
};
struct CutCommand {
    std::string node;
    Error why;
};
struct AttachStream {
    ConnectionId control = 0;
    Address coordinator;
    std::uint64_t session = 0;
};
struct DetachStream {
    ConnectionId control = 0;
};
struct RoutesCommand {
    std::shared_ptr<BoundedQueue<std::vector<std::string>>> answer;
};
using StreamCommand = std::variant<RosterCommand, SendPiece, CutCommand, AttachStream, DetachStream, RoutesCommand>;

}  // namespace

struct Streams::State {
    Link& link;
    std::shared_ptr<LinkEvents> events;
    StreamTable table;
    BoundedQueue<StreamCommand> commands{stream_command_limit};
    std::atomic<bool> stopping{false};
    Instant next_tick{};
    std::thread thread;

    State(Link& used_link, std::shared_ptr<LinkEvents> stream_events, StreamCallbacks callbacks, StreamLimits limits)
        : link(used_link),
          events(std::move(stream_events)),
          table({[this](ConnectOptions options) { return link.connect(std::move(options)); },
                 [this](ConnectionId to, Message message) { link.send(to, std::move(message)); },
                 [this](ConnectionId which, Error why) { link.close(which, std::move(why)); },
                 [this](std::vector<StreamPeer> peers) { link.allow_streams(std::move(peers)); }, std::move(callbacks),
                 link.port() != 0},
                limits) {}

    /// An event of nobody ends the thread's wait; where the queue is full it does not wait.
    void wake() const {
        LinkEvent nothing = PeerHeard{};
        (void)events->try_push(nothing);
    }
    bool put(StreamCommand command) {
        const bool taken = commands.push(std::move(command));
        wake();
        return taken;
    }
    void execute(StreamCommand&& command, Instant now) {
        if (auto* sending = std::get_if<SendPiece>(&command)) {
            table.send(sending->node, std::move(sending->message), now);
        } else if (const auto* list = std::get_if<RosterCommand>(&command)) {
            table.roster(list->roster, list->at);
        } else if (const auto* cut = std::get_if<CutCommand>(&command)) {
            table.cut_off(cut->node, cut->why);
        } else if (auto* attaching = std::get_if<AttachStream>(&command)) {
            table.attach(attaching->control, std::move(attaching->coordinator), attaching->session);
        } else if (const auto* detaching = std::get_if<DetachStream>(&command)) {
            table.detach(detaching->control);
        } else if (const auto* asked = std::get_if<RoutesCommand>(&command)) {
            asked->answer->push(table.routes());
        }
    }
    void run() {
        while (!stopping.load(std::memory_order_relaxed)) {
            auto event = events->pop_for(stream_turn);
            const auto now = real_now();
            while (auto command = commands.try_pop()) {
                execute(std::move(*command), now);
            }
            if (event) {
                table.handle(std::move(*event), now);
            }
            if (now >= next_tick) {
                next_tick = now + stream_turn;
                table.tick(now);
            }
        }
        commands.close();
        while (auto command = commands.try_pop()) {
            if (const auto* asked = std::get_if<RoutesCommand>(&*command)) {
                asked->answer->close();
            }
        }
    }
};

Streams::Streams(Link& link, std::shared_ptr<LinkEvents> events, StreamCallbacks callbacks, StreamLimits limits)
    : state_(std::make_unique<State>(link, std::move(events), std::move(callbacks), limits)) {
    state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Streams::~Streams() {
    state_->stopping.store(true, std::memory_order_relaxed);
    state_->wake();
    state_->thread.join();
    state_->events->close();  // the link must not wait for us
}

void Streams::roster(const Roster& roster, Instant now) {
    state_->put(RosterCommand{roster, now});
}
void Streams::send(const std::string& node, StreamData message) {
    ASSERT(!message.payload.empty());
    message.offset = 0;
    state_->put(SendPiece{node, std::move(message)});
}
void Streams::cut_off(const std::string& node, Error why) {
    state_->put(CutCommand{node, std::move(why)});
}
void Streams::attach(ConnectionId control, Address coordinator, std::uint64_t session) {
    state_->put(AttachStream{control, std::move(coordinator), session});
}
void Streams::detach(ConnectionId control) {
    state_->put(DetachStream{control});
}

Traffic Streams::traffic() const {
    return state_->link.stream_traffic();
}

std::vector<std::string> Streams::routes() const {
    auto answer = std::make_shared<BoundedQueue<std::vector<std::string>>>(1);
    return state_->put(RoutesCommand{answer}) ? answer->pop().value_or(std::vector<std::string>())
                                              : std::vector<std::string>();
}

}  // namespace causeway
