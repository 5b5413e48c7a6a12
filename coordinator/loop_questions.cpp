// Questions of operators that a node itself answers (node.log): passed on over the node's control connection under a
// number of our own, and back. The node's policy decides; the coordinator only carries. Part of Loop (loop.h).
#include <algorithm>

#include "common/text.h"
#include "coordinator/limits.h"
#include "coordinator/loop.h"

namespace causeway {
namespace {

Error not_there(const std::string& name, const Membership& members) {
    std::vector<std::string> known;
    for (const auto& [node, member] : members.members()) {
        known.push_back(node);
    }
    for (const auto& [node, datasets] : members.declared()) {
        known.push_back(node);
    }
    if (std::ranges::find(known, name) != known.end()) {
        return {ErrorKind::disconnected, "node_offline",
                name +
                    " is not connected; `causeway node list` shows who is. On its machine `causeway node log --state "
                    "DIR` reads the log without a connection"};
    }
    const auto near = nearest_name(name, known);
    return {ErrorKind::not_found, "unknown_node",
            "no node is called \"" + name + "\"" + (near ? "; did you mean \"" + *near + "\"?" : ".") +
                " `causeway node list` has them all"};
}

}  // namespace

void Loop::ask_node(ConnectionId connection, const Request& request, const std::string& by, const Json& body) {
    const auto name = body["name"].text();
    const auto* member = machine_.members().by_node(name);
    if (member == nullptr || member->role == "operator") {
        return answer(connection, request.id, fail(not_there(name, machine_.members())));
    }
    const auto own = std::ranges::count_if(questions_, [&](const auto& q) { return q.second.asker == connection; });
    if (questions_.size() >= limits::watches || static_cast<std::size_t>(own) >= limits::watches_per_session) {
        return answer(
            connection, request.id,
            fail(ErrorKind::overloaded, "too_many_questions", "too many questions wait for nodes; try later"));
    }
    const auto number = ++last_question_;
    questions_[number] = {connection, request.id, member->session};
    const auto passed_on = Json::object().set("by", by).set("after", body["after"]).set("lines", body["lines"]);
    partners_.link.send(member->session, Request{.id = number, .verb = request.verb, .body = passed_on.dump()});
}

/// Only the node that was asked may answer.
void Loop::forward(ConnectionId node, const Reply& reply) {
    const auto found = questions_.find(reply.id);
    if (found == questions_.end() || found->second.node != node) {
        return;
    }
    auto answered = reply;
    answered.id = found->second.request;
    answered.last = true;
    partners_.link.send(found->second.asker, std::move(answered));
    questions_.erase(found);
}

/// Who asked is gone, or who was to answer is; then the asker hears so.
void Loop::forget_questions(ConnectionId connection) {
    for (auto entry = questions_.begin(); entry != questions_.end();) {
        const auto current = entry++;
        const auto& question = current->second;
        if (question.node == connection) {
            answer(question.asker, question.request,
                   fail(ErrorKind::disconnected, "node_offline", "the node went away before it answered"));
        }
        if (question.node == connection || question.asker == connection) {
            questions_.erase(current);
        }
    }
}

}  // namespace causeway
