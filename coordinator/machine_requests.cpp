// What operators ask: verbs that give one reply at once, and watches, whose replies come from finish().
// Part of Coordinator (machine.h). Thread: loop. Pure.
//
// An experiment that is submitted or resumed is checked whole before it is queued; what is stored is the canonical
// file, by which restarts, resumes and replays go on.
#include <algorithm>

#include "configs/canonical.h"
#include "coordinator/assignment.h"
#include "coordinator/limits.h"
#include "coordinator/machine.h"

namespace causeway {
namespace {

ErrorNotice notice(const Error& error) {
    return {error.kind, error.code, error.message};
}

}  // namespace

/// Verbs that give one reply at once go through answer(); watch and wait reply from finish(), and so does a question
/// about a round that is only in the store.
void Coordinator::on_request(Instant now, const Member& member, SessionId session, const Request& request,
                             CoordinatorEffects& effects) {
    const auto reply = [&](const Result<Json>& result) {
        Reply message{request.id, true, result ? result->dump() : "", std::nullopt};
        if (!result) {
            message.error = notice(result.error());
        }
        effects.send.push_back({session, std::move(message)});
    };
    if (member.role != "operator") {
        return reply(fail(ErrorKind::refused, "not_an_operator", "only an operator's identity may ask for this"));
    }
    auto body = Json::parse(request.body.empty() ? "{}" : request.body, max_request_bytes);
    if (!body) {
        return reply(fail(body.error()));
    }
    const auto later = [&](Watches::Kind kind, const char* from) {
        const auto id = find_experiment(experiments_, *body);
        const auto round =
            static_cast<std::uint32_t>(std::clamp<std::int64_t>((*body)[from].integer(), 0, 0xffffffff));
        const auto added = id ? watches_.add(session, request.id, *id, kind, round) : Status(fail(id.error()));
        if (!added) {
            reply(fail(added.error()));
        }
    };
    if (request.verb == "experiment.watch") {
        return later(Watches::Kind::watch, "from");
    }
    if (request.verb == "experiment.wait") {
        return later(Watches::Kind::wait, "from");
    }
    if (request.verb == "model.where") {
        const auto id = find_experiment(experiments_, *body);
        const auto model = id ? describe_model(experiments_.at(*id), *body) : fail(id.error());
        if (model && !*model) {
            return later(Watches::Kind::model, "round");
        }
        return reply(model ? Result<Json>(**model) : fail(model.error()));
    }
    reply(answer(now, member, request, *body, effects));
}

void Coordinator::on(Instant, const RoundsRead& event, CoordinatorEffects& effects) {
    watches_.read(experiments_, event, effects);
}

Result<Json> Coordinator::answer(Instant now, const Member& member, const Request& request, const Json& body,
                                 CoordinatorEffects& effects) {
    if (request.verb == "experiment.submit") {
        return submit(member, body, effects);
    }
    if (request.verb == "experiment.resume") {
        return resume(member, body, effects);
    }
    if (request.verb == "experiment.list") {
        return list_experiments(experiments_, queue());
    }
    if (request.verb == "experiment.status") {
        TRY_ASSIGN(const auto id, find_experiment(experiments_, body));
        const auto& experiment = experiments_.at(id);
        const auto holders = members_.live_holders(experiment.config().data.dataset).size();
        return experiment.status(now).set("holders", static_cast<std::uint64_t>(holders));
    }
    if (request.verb == "experiment.cancel") {
        return cancel(now, member, body, effects);
    }
    if (request.verb == "node.list") {
        return list_nodes(members_, experiments_);
    }
    if (request.verb == "node.measurements") {
        return measured();
    }
    return fail(ErrorKind::unsupported, "unknown_verb", "this coordinator has no \"" + request.verb + "\"");
}

/// What a node says that its work took, before it is known whether the work counts: its time was the same.
void Coordinator::measure(const Member& member, const Offer& offer) {
    const auto* experiment = find(offer.lease.experiment);
    if (experiment == nullptr || !experiment->active()) {
        return;
    }
    const auto& config = experiment->config();
    const auto own = members_.examples_of(member.node, config.data.dataset) * config.train.local_epochs;
    measurements_.note(member.node, {.experiment = experiment->id(),
                                     .layers = experiment->layers_of(member.role),
                                     .examples = member.role == "client" ? own : offer.update.metrics.examples,
                                     .seconds = offer.update.metrics.compute_seconds});
}

Json Coordinator::measured() const {
    auto works = Json::object();
    for (const auto& [id, nodes] : measurements_.experiments()) {
        if (const auto found = experiments_.find(id); found != experiments_.end()) {
            const auto& assignment = found->second.assignment();
            works.set(std::to_string(id), Json::object()
                                              .set("architecture", assignment.architecture)
                                              .set("optimizer", assignment.optimizer)
                                              .set("batch", assignment.batch));
        }
    }
    return Json::object().set("nodes", measurements_.json()).set("experiments", std::move(works));
}

/// Everything that can be wrong is found here, before it is queued; what is stored is the canonical file.
Result<Json> Coordinator::submit(const Member& member, const Json& body, CoordinatorEffects& effects) {
    TRY_ASSIGN(auto config, check_submission(body, members_, options_.models));
    SaveExperiment saved;
    saved.submitted_by = member.node;
    return enqueue(std::move(saved), std::move(config), effects);
}

/// A new experiment that goes on from the last commit of one that is over, with its file or another.
Result<Json> Coordinator::resume(const Member& member, const Json& body, CoordinatorEffects& effects) {
    TRY_ASSIGN(const auto parent, find_experiment(experiments_, body));
    TRY_ASSIGN(auto config, check_resume(experiments_.at(parent), body, members_));
    SaveExperiment saved;
    saved.submitted_by = member.node;
    saved.parent = parent;
    saved.parent_round = experiments_.at(parent).records().back().round;
    TRY_ASSIGN(auto reply, enqueue(std::move(saved), std::move(config), effects));
    return reply.set("parent", parent).set("parent_round", experiments_.at(parent).records().back().round);
}

Result<Json> Coordinator::enqueue(SaveExperiment saved, Experiment config, CoordinatorEffects& effects) {
    TRY_ASSIGN(auto assignment, assignment_of(config, saved.submitted_by));
    assignment.continues = ancestors_of(saved);
    if (queue().size() >= limits::queued_experiments || experiments_.size() >= limits::experiments) {
        return fail(ErrorKind::overloaded, "queue_full", "too many experiments are waiting; cancel one or try later");
    }
    saved.experiment = ++last_experiment_;
    saved.name = config.experiment.name;
    saved.file = canonical_toml(config);
    saved.state = "queued";
    const auto id = saved.experiment;
    auto identity = identity_of(saved);
    const auto [entry, added] = experiments_.try_emplace(id, std::move(identity), std::move(saved), std::move(config),
                                                         std::move(assignment));
    unfinished_.insert(id);
    entry->second.submit(effects);
    return Json::object().set("id", id).set("name", entry->second.saved().name).set("state", "queued");
}

/// The nearest first: client state of the first of them that a node has is what it goes on with.
std::vector<std::uint64_t> Coordinator::ancestors_of(const SaveExperiment& saved) const {
    std::vector<std::uint64_t> ids;
    for (auto parent = saved.parent; parent != 0 && ids.size() < limits::ancestors;) {
        ids.push_back(parent);
        const auto found = experiments_.find(parent);
        parent = found == experiments_.end() ? 0 : found->second.saved().parent;
    }
    return ids;
}

/// Also a queued one. What is over stays as it ended.
Result<Json> Coordinator::cancel(Instant now, const Member& member, const Json& body, CoordinatorEffects& effects) {
    TRY_ASSIGN(const auto id, find_experiment(experiments_, body));
    auto& experiment = experiments_.at(id);
    if (experiment.over()) {
        return fail(ErrorKind::refused, "already_over",
                    "experiment " + std::to_string(id) + " is already over: " + experiment.saved().state);
    }
    experiment.cancel({now, members_, busy_for(id), effects}, member.node);
    return Json::object().set("id", id).set("state", experiment.saved().state);
}

}  // namespace causeway
