// What peers do and ask, as the machines' events; enrolment, revocation and the audit log go to the admission desk.
// Part of Loop (loop.h). Thread: loop.
#include <algorithm>

#include <fmt/format.h>

#include "common/log.h"
#include "coordinator/loop.h"
#include "wire/error_notice.h"

namespace causeway {
namespace {

/// Verbs that the loop hands to the admission desk instead of the machines: they need the store.
constexpr std::string_view desk_verbs[] = {"token.new",   "token.list",        "token.revoke",   "node.list",
                                           "node.revoke", "certificate.renew", "ca.requests",    "ca.import",
                                           "audit.show",  "node.log",          "experiment.log", "backup.stage"};
/// The one verb for every role: what it asks for is the asker's own.
constexpr std::string_view for_everyone = "certificate.renew";

bool is_desk_verb(const Request& request) {
    return std::ranges::find(desk_verbs, request.verb) != std::end(desk_verbs);
}

/// Every command of an operator comes and goes: news only to who looks for it.
LogLevel level_of(const Identity& identity) {
    return identity.role == Role::operator_ ? LogLevel::debug : LogLevel::info;
}

Reply to_peer_reply(std::uint64_t request, const Result<Json>& body) {
    Reply reply{.id = request};
    if (body) {
        reply.body = body->dump();
    } else {
        reply.error = notice_of(body.error());
    }
    return reply;
}

}  // namespace

void Loop::on(const LinkEvent& event) {
    std::visit([this](const auto& e) { on_peer(e); }, event);
}

void Loop::on_peer(const PeerOpened& event) {
    if (event.kind == ConnectionKind::control && event.peer) {
        sessions_[event.connection] = {*event.peer, event.address, false};
        partners_.transfers.attach(event.connection);
    }
}

void Loop::on_peer(const PeerMessage& event) {
    if (const auto* join = std::get_if<JoinRequest>(&event.message)) {
        return on_join(event.connection, *join);
    }
    const auto session = sessions_.find(event.connection);
    if (session == sessions_.end()) {
        return;
    }
    // The link looked when the session began; what was under way since a revocation is not acted on either.
    if (partners_.admission.is_revoked(session->second.peer.fingerprint)) {
        return partners_.link.close(event.connection, revoked_error());
    }
    if (stuck_ && answer_stuck(event.connection, session->second, event.message)) {
        return;
    }
    const auto& identity = session->second.peer.identity;
    if (const auto* hello = std::get_if<Hello>(&event.message); hello && !session->second.greeted) {
        session->second.greeted = true;
        log_line(
            level_of(identity), "coordinator",
            fmt::format("{} {} connected from {}", to_string(identity.role), identity.node, session->second.address));
        return step(SessionOpened{event.connection, identity.node, std::string(to_string(identity.role)), *hello,
                                  session->second.peer.fingerprint});
    }
    if (const auto* request = std::get_if<Request>(&event.message); request && is_desk_verb(*request)) {
        return on_request(event.connection, session->second, *request);
    }
    // The machines number what they ask by experiment; smaller numbers are operators' questions.
    if (const auto* reply = std::get_if<Reply>(&event.message); reply && experiment_of_request(reply->id) == 0) {
        return forward(event.connection, *reply);
    }
    step(MessageReceived{event.connection, event.message});
}

/// Nothing that rests on what is not stored may be said, so an operator hears at once why. Nodes wait: they try again.
bool Loop::answer_stuck(ConnectionId connection, const Session& session, const Message& message) {
    if (session.peer.identity.role != Role::operator_) {
        return false;
    }
    const ErrorNotice why{stuck_->kind, stuck_->code, "the coordinator cannot store its state: " + stuck_->message};
    if (const auto* request = std::get_if<Request>(&message)) {
        partners_.link.send(connection, Reply{.id = request->id, .error = why});
    } else {
        partners_.link.send(connection, why);
    }
    return true;
}

void Loop::on_peer(const PeerClosed& event) {
    if (const auto session = sessions_.extract(event.connection)) {
        const auto& identity = session.mapped().peer.identity;
        log_line(level_of(identity), "coordinator",
                 fmt::format("{} {} is gone: {}", to_string(identity.role), identity.node, event.why.message));
        partners_.transfers.detach(event.connection);
        forget_questions(event.connection);
        step(SessionClosed{event.connection, event.why.code});
    }
}

void Loop::on_peer(const PeerSilent& event) {
    step(SessionSilent{event.connection});
}

void Loop::on_peer(const PeerHeard& event) {
    step(SessionHeard{event.connection});
}

void Loop::on_peer(const PeerMeasured& event) {
    if (const auto session = sessions_.find(event.connection); session != sessions_.end()) {
        step(LinkMeasured{.node = session->second.peer.identity.node, .round_trip = event.round_trip});
    }
}

/// The requester is named in the audit log; the answer comes back through the queue.
void Loop::on_request(ConnectionId connection, const Session& session, const Request& request) {
    const auto& who = session.peer.identity;
    if (who.role != Role::operator_ && request.verb != for_everyone) {
        return answer(connection, request.id,
                      fail(ErrorKind::refused, "not_an_operator", "only an operator's identity may ask for this"));
    }
    const auto body = Json::parse(request.body.empty() ? "{}" : request.body, max_request_bytes);
    if (!body) {
        return answer(connection, request.id, fail(body.error()));
    }
    const Admission::Answer done = [queue = queue_, connection, id = request.id](const Result<Json>& reply) {
        queue->push(SendLater{connection, to_peer_reply(id, reply)});
    };
    if (request.verb == "node.list") {
        partners_.admission.list_nodes(list_nodes(machine_.members(), machine_.experiments()), connected(), done);
    } else if (request.verb == "node.log") {
        ask_node(connection, request, who.node, *body);
    } else if (request.verb == "node.revoke") {
        revoke(*body, who.node, done);
    } else {
        partners_.admission.request(request.verb, *body, session.peer, done);
    }
}

/// The machines hear of it before the operator does: when the command returns, the sessions have been told to close.
void Loop::revoke(const Json& body, const std::string& by, const Admission::Answer& done) {
    const auto name = body["name"].text();
    partners_.admission.revoke(body, by, [queue = queue_, name, by, done](const Result<Json>& reply) {
        if (reply) {
            queue->push(CoordinatorEvent(NodeRevoked{name, by}));
        }
        done(reply);
    });
}

std::set<std::string> Loop::connected() const {
    std::set<std::string> names;
    for (const auto& [connection, session] : sessions_) {
        names.insert(session.peer.identity.node);
    }
    return names;
}

void Loop::on_join(ConnectionId connection, const JoinRequest& request) {
    partners_.admission.enrol(request, [queue = queue_, connection, name = request.name](Message reply) {
        const auto* refusal = std::get_if<ErrorNotice>(&reply);
        const auto* words = refusal == nullptr                      ? "{} has joined{}"
                            : refusal->kind == ErrorKind::timed_out ? "{} has to wait: {}"
                                                                    : "{} may not join: {}";
        log_info("coordinator", fmt::format(fmt::runtime(words), name, refusal ? refusal->message : std::string()));
        queue->push(SendLater{connection, std::move(reply)});
    });
}

void Loop::answer(ConnectionId connection, std::uint64_t request, const Result<Json>& body) {
    partners_.link.send(connection, to_peer_reply(request, body));
}

}  // namespace causeway
