// See evaluation_request.h. What an assignment has and an evaluation does not need stays empty.
// Pure, any thread.
#include "client/evaluation_request.h"

#include "common/json.h"

namespace causeway::node {

Result<Assign> read_evaluation_request(const Request& request) {
    if (request.verb != "evaluate") {
        return fail(ErrorKind::unsupported, "unknown_verb", "this node has no \"" + request.verb.substr(0, 80) + "\"");
    }
    TRY_ASSIGN(const auto body, Json::parse(request.body, max_request_bytes));
    Assign assign;
    assign.lease.experiment = static_cast<std::uint64_t>(body["experiment"].integer());
    assign.lease.round = static_cast<std::uint32_t>(body["round"].integer());
    assign.experiment_name = body["name"].text();
    assign.seed = static_cast<std::uint64_t>(body["seed"].integer());
    assign.dataset = body["dataset"].text();
    assign.data_options = body["data_options"].text();
    assign.architecture = body["architecture"].text();
    assign.model_bytes = static_cast<std::uint64_t>(body["model_bytes"].integer());
    assign.cohort = static_cast<std::uint32_t>(body["cohort"].integer());
    assign.regime = body["regime"].text();
    assign.submitted_by = body["submitted_by"].text();
    for (const Json& before : body["continues"].items()) {
        assign.continues.push_back(static_cast<std::uint64_t>(before.integer()));
    }
    TRY_ASSIGN(assign.model, digest_from_hex(body["model"].text()));
    if (assign.dataset.empty() || assign.architecture.empty() || assign.model_bytes == 0 ||
        assign.model_bytes >> 62 != 0) {
        return fail(ErrorKind::invalid, "missing_argument", "evaluate needs a dataset, an architecture and a model");
    }
    return assign;
}

Reply evaluation_reply(std::uint64_t request, const Result<Figures>& figures) {
    Reply reply{.id = request};
    if (figures) {
        reply.body = to_json(*figures).dump();
    } else {
        reply.error = ErrorNotice{figures.error().kind, figures.error().code, figures.error().message};
    }
    return reply;
}

}  // namespace causeway::node
