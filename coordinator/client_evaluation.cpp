// See client_evaluation.h.
#include "coordinator/client_evaluation.h"

#include "common/json_lists.h"

namespace causeway {
namespace {

constexpr std::size_t longest_reply = 16 * 1024;  // a handful of figures

}  // namespace

void ClientEvaluation::answer(const std::string& node, const Reply& reply) {
    if (!waiting_.contains(node)) {
        return;
    }
    if (reply.error) {
        return leave_out(node, reply.error->code + ": " + reply.error->message);
    }
    const auto body = Json::parse(reply.body, longest_reply);
    auto figures = body ? parse_figures(*body) : Result<Figures>(fail(body.error()));
    if (!figures) {
        return leave_out(node, figures.error().code + ": " + figures.error().message);
    }
    waiting_.erase(node);
    figures_[node] = *std::move(figures);
}

void ClientEvaluation::leave_out(const std::string& node, const std::string& why) {
    if (waiting_.erase(node) != 0) {
        left_out_[node] = why;
    }
}

void ClientEvaluation::tick(Instant now) {
    while (now >= until_ && !waiting_.empty()) {
        const auto node = *waiting_.begin();
        leave_out(node, "late");
    }
}

std::string ClientEvaluation::missing() const {
    std::string text;
    for (const auto& [node, why] : left_out_) {
        text += (text.empty() ? "" : ", ") + node + " (" + why + ")";
    }
    return text;
}

Request evaluate_request(const Assign& assignment) {
    const auto body = Json::object()
                          .set("name", assignment.experiment_name)
                          .set("experiment", assignment.lease.experiment)
                          .set("round", assignment.lease.round)
                          .set("seed", assignment.seed)
                          .set("dataset", assignment.dataset)
                          .set("data_options", assignment.data_options)
                          .set("architecture", assignment.architecture)
                          .set("model", assignment.model.hex())
                          .set("model_bytes", assignment.model_bytes)
                          .set("cohort", assignment.cohort)
                          .set("regime", assignment.regime)
                          .set("submitted_by", assignment.submitted_by)
                          .set("continues", json_of(assignment.continues));
    return {evaluation_request(assignment.lease.experiment, assignment.lease.round), "evaluate", body.dump()};
}

}  // namespace causeway
