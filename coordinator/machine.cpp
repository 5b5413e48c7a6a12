// See machine.h. Each event is handled whole, then finish() looks at what has become due.
#include "coordinator/machine.h"

#include <algorithm>

#include "configs/canonical.h"
#include "configs/reader.h"
#include "coordinator/assignment.h"
#include "coordinator/limits.h"

namespace causeway {
namespace {

/// Rounds are numbered from 0 without gaps; anything else did not come from this machine.
bool contiguous(const std::vector<RecoveredRound>& rounds) {
    for (std::size_t i = 0; i < rounds.size(); ++i) {
        if (rounds[i].round != i) {
            return false;
        }
    }
    return true;
}

ErrorNotice notice(const Error& error) {
    return {error.kind, error.code, error.message};
}

bool speaks_our_version(const Hello& hello) {
    return hello.version_min <= protocol_version && hello.version_max >= protocol_version_min;
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options, Recovered recovered)
    : options_(std::move(options)), epoch_(recovered.epoch), members_(std::move(recovered.declared)) {
    for (const auto& experiment : recovered.experiments) {
        recover(experiment);
    }
}

/// An experiment that this build cannot read is kept, shown and failed with the reason; the others go on.
void Coordinator::recover(const RecoveredExperiment& recovered) {
    const auto id = recovered.saved.experiment;
    last_experiment_ = std::max(last_experiment_, id);
    auto config = read_experiment_or_fail(recovered.saved.file, recovered.saved.name);
    auto assignment =
        config ? assignment_of(*config, recovered.saved.submitted_by) : Result<Assign>(fail(config.error()));
    if (!assignment) {
        unusable_[id] = "unreadable: " + assignment.error().message;
    } else if (!contiguous(recovered.rounds)) {
        unusable_[id] = "corrupt: the store's rounds have gaps";
    }
    auto known = recovered;
    if (!contiguous(known.rounds)) {
        known.rounds.clear();
    }
    experiments_.try_emplace(id, ExperimentMachine::Identity{epoch_, options_.model_path}, known,
                             config.value_or(Experiment{}), assignment.value_or(Assign{}));
}

CoordinatorEffects Coordinator::start(Instant now) {
    CoordinatorEffects effects;
    for (const auto& [id, reason] : unusable_) {
        experiments_.at(id).fail({now, members_, {}, effects}, reason);
    }
    for (auto& [id, experiment] : experiments_) {
        experiment.resume({now, members_, busy_for(id), effects});
    }
    finish(now, effects);
    return effects;
}

CoordinatorEffects Coordinator::step(Instant now, const CoordinatorEvent& event) {
    CoordinatorEffects effects;
    std::visit([&](const auto& e) { on(now, e, effects); }, event);
    finish(now, effects);
    return effects;
}

/// Ticks are cheap and idempotent, so every step gives one to each active experiment: a member that another
/// experiment has just let go can be drawn without a word from anybody.
void Coordinator::finish(Instant now, CoordinatorEffects& effects) {
    start_queued(now, effects);
    for (auto& [id, experiment] : experiments_) {
        if (experiment.active()) {
            experiment.tick({now, members_, busy_for(id), effects});
        }
    }
    start_queued(now, effects);
    if (watches_.send(experiments_, effects)) {
        effects.wake_at = now;
    }
    for (const auto& [id, experiment] : experiments_) {
        effects.wake_at = std::min(effects.wake_at, experiment.deadline());
    }
}

/// First in, first out.
void Coordinator::start_queued(Instant now, CoordinatorEffects& effects) {
    auto active = active_count();
    for (auto& [id, experiment] : experiments_) {
        if (active >= std::max<std::uint32_t>(options_.parallel, 1)) {
            return;
        }
        if (experiment.queued()) {
            experiment.start({now, members_, busy_for(id), effects});
            active = active_count();
        }
    }
}

std::size_t Coordinator::active_count() const {
    return static_cast<std::size_t>(std::count_if(experiments_.begin(), experiments_.end(),
                                                  [](const auto& entry) { return entry.second.active(); }));
}

// ---------------------------------------------------------------- sessions

void Coordinator::on(Instant now, const SessionOpened& event, CoordinatorEffects& effects) {
    const auto refuse = [&](const char* code, const char* why) { effects.close.push_back({event.session, code, why}); };
    if (!speaks_our_version(event.hello)) {
        return refuse("version", "no protocol version is spoken by both sides; upgrade the older one");
    }
    if (members_.session_count() >= options_.max_sessions) {
        return refuse("too_many_sessions", "the coordinator has as many sessions as it may");
    }
    if (event.hello.datasets.size() > limits::datasets_per_node || event.hello.held.size() > limits::held_per_node) {
        return refuse("hello_too_long", "too many datasets or held updates in one hello");
    }
    // From here on the session is the node's; an older one of it is closed.
    const auto& member = members_.open(event, effects);
    effects.send.push_back({event.session, Welcome{std::min(event.hello.version_max, protocol_version), event.session,
                                                   epoch_, options_.federation}});
    if (member.role == "client") {
        member_ready(now, member, event.hello.held, effects);
    }
}

/// Each experiment answers what is held of it. Of one that is unknown here nothing can come any more.
void Coordinator::member_ready(Instant now, const Member& member, const std::vector<HeldUpdate>& held,
                               CoordinatorEffects& effects) {
    std::map<ExperimentId, std::vector<HeldUpdate>> held_by_experiment;
    for (const auto& update : held) {
        held_by_experiment[update.experiment].push_back(update);
    }
    for (const auto& [id, updates] : held_by_experiment) {
        if (!experiments_.contains(id)) {
            effects.send.push_back({member.session, Ended{id, "failed", "this coordinator knows no such experiment"}});
        }
    }
    for (auto& [id, experiment] : experiments_) {
        experiment.member_ready({now, members_, busy_for(id), effects}, member, held_by_experiment[id]);
    }
}

void Coordinator::member_lost(Instant now, const std::string& node, bool session_gone, CoordinatorEffects& effects) {
    for (auto& [id, experiment] : experiments_) {
        experiment.member_lost({now, members_, busy_for(id), effects}, node, session_gone);
    }
}

void Coordinator::on(Instant now, const SessionClosed& event, CoordinatorEffects& effects) {
    watches_.close(event.session);
    if (const auto node = members_.close(event.session); !node.empty()) {
        member_lost(now, node, true, effects);
    }
}

void Coordinator::on(Instant now, const SessionSilent& event, CoordinatorEffects& effects) {
    if (const auto* member = members_.set_silent(event.session, true)) {
        member_lost(now, member->node, false, effects);
    }
}

void Coordinator::on(Instant now, const SessionHeard& event, CoordinatorEffects& effects) {
    const auto* member = members_.set_silent(event.session, false);
    if (member != nullptr && member->role == "client") {
        member_ready(now, *member, {}, effects);
    }
}

void Coordinator::on(Instant now, const MessageReceived& event, CoordinatorEffects& effects) {
    const auto* member = members_.by_session(event.session);
    if (member == nullptr) {
        return;  // a session that was closed or taken over: nothing said under it counts
    }
    if (const auto* request = std::get_if<Request>(&event.message)) {
        on_request(now, *member, event.session, *request, effects);
        return;
    }
    // While a member is suspected its lease does not hold; the link says SessionHeard before what it hears.
    if (member->role != "client" || member->silent) {
        return;
    }
    const auto about = [&](const Lease& lease) {
        if (auto* experiment = find(lease.experiment)) {
            experiment->on_message({now, members_, busy_for(lease.experiment), effects}, *member, event.message);
        } else {
            effects.send.push_back({event.session, Ended{lease.experiment, "failed", "no such experiment"}});
        }
    };
    if (const auto* reply = std::get_if<Reply>(&event.message)) {
        const auto id = experiment_of_request(reply->id);
        if (auto* experiment = find(id)) {
            experiment->on_client_evaluated({now, members_, busy_for(id), effects}, member->node, *reply);
        }
    } else if (const auto* offer = std::get_if<Offer>(&event.message)) {
        about(offer->lease);
    } else if (const auto* progress = std::get_if<Progress>(&event.message)) {
        about(progress->lease);
    } else if (const auto* decline = std::get_if<Decline>(&event.message)) {
        about(decline->lease);
    }
}

/// At once, and without waiting for it to come back: nothing that its sessions say from here on is heard.
void Coordinator::on(Instant now, const NodeRevoked& event, CoordinatorEffects& effects) {
    const auto why = "revoked by " + event.by;
    for (const auto session : members_.revoke(event.node)) {
        watches_.close(session);
        effects.close.push_back(
            {session, "revoked",
             "this identity was " + why + "; to come back, ask for a new token and join with a new state folder"});
    }
    for (auto& [id, experiment] : experiments_) {
        experiment.member_revoked({now, members_, busy_for(id), effects}, event.node, why);
    }
}

void Coordinator::on(Instant, const Tick&, CoordinatorEffects&) {}  // finish() does what is due

// ---------------------------------------------------------------- results of jobs

void Coordinator::on(Instant now, const ModelMade& event, CoordinatorEffects& effects) {
    if (auto* experiment = find(event.experiment)) {
        experiment->on_model_made({now, members_, busy_for(event.experiment), effects}, event);
    }
}

void Coordinator::on(Instant now, const UpdateAbsorbed& event, CoordinatorEffects& effects) {
    if (auto* experiment = find(event.experiment)) {
        experiment->on_absorbed({now, members_, busy_for(event.experiment), effects}, event);
    }
}

void Coordinator::on(Instant now, const SnapshotWritten& event, CoordinatorEffects& effects) {
    if (auto* experiment = find(event.experiment)) {
        experiment->on_snapshot({now, members_, busy_for(event.experiment), effects}, event);
    }
}

void Coordinator::on(Instant now, const ModelEvaluated& event, CoordinatorEffects& effects) {
    if (auto* experiment = find(event.experiment)) {
        experiment->on_evaluated({now, members_, busy_for(event.experiment), effects}, event);
    }
}

void Coordinator::on(Instant now, const JobFailed& event, CoordinatorEffects& effects) {
    if (auto* experiment = find(event.experiment)) {
        experiment->on_job_failed({now, members_, busy_for(event.experiment), effects}, event);
    }
}

// ---------------------------------------------------------------- operators

/// Verbs that give one reply at once go through answer(); watch and wait reply from finish().
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
    if (request.verb == "experiment.watch" || request.verb == "experiment.wait") {
        const auto id = find_experiment(experiments_, *body);
        if (!id) {
            return reply(fail(id.error()));
        }
        const auto kind = request.verb == "experiment.watch" ? Watches::Kind::watch : Watches::Kind::wait;
        const auto from =
            static_cast<std::uint32_t>(std::clamp<std::int64_t>((*body)["from"].integer(), 0, 0xffffffff));
        if (const auto added = watches_.add(session, request.id, *id, kind, from); !added) {
            reply(fail(added.error()));
        }
        return;
    }
    reply(answer(now, member, request, *body, effects));
}

Result<Json> Coordinator::answer(Instant now, const Member& member, const Request& request, const Json& body,
                                 CoordinatorEffects& effects) {
    if (request.verb == "experiment.submit") {
        return submit(member, body, effects);
    }
    if (request.verb == "experiment.list") {
        return list_experiments(experiments_);
    }
    if (request.verb == "experiment.status") {
        TRY_ASSIGN(const auto id, find_experiment(experiments_, body));
        const auto& experiment = experiments_.at(id);
        const auto holders = members_.live_holders(experiment.config().data.dataset).size();
        return experiment.status().set("holders", static_cast<std::uint64_t>(holders));
    }
    if (request.verb == "model.where") {
        TRY_ASSIGN(const auto id, find_experiment(experiments_, body));
        return describe_model(experiments_.at(id), body);
    }
    if (request.verb == "experiment.cancel") {
        return cancel(now, member, body, effects);
    }
    if (request.verb == "node.list") {
        return list_nodes(members_, experiments_);
    }
    return fail(ErrorKind::unsupported, "unknown_verb", "this coordinator has no \"" + request.verb + "\"");
}

/// Everything that can be wrong is found here, before it is queued; what is stored is the canonical file.
Result<Json> Coordinator::submit(const Member& member, const Json& body, CoordinatorEffects& effects) {
    TRY_ASSIGN(auto config, check_submission(body, members_, options_.models));
    TRY_ASSIGN(auto assignment, assignment_of(config, member.node));
    const auto queued = static_cast<std::size_t>(std::count_if(
        experiments_.begin(), experiments_.end(), [](const auto& entry) { return entry.second.queued(); }));
    if (queued >= limits::queued_experiments || experiments_.size() >= limits::experiments) {
        return fail(ErrorKind::overloaded, "queue_full", "too many experiments are waiting; cancel one or try later");
    }
    const auto id = ++last_experiment_;
    SaveExperiment saved{id, config.experiment.name, canonical_toml(config), "queued", "", member.node};
    const auto [entry, added] = experiments_.try_emplace(id, ExperimentMachine::Identity{epoch_, options_.model_path},
                                                         std::move(saved), std::move(config), std::move(assignment));
    entry->second.submit(effects);
    return Json::object().set("id", id).set("name", entry->second.saved().name).set("state", "queued");
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

ExperimentMachine* Coordinator::find(ExperimentId id) {
    const auto found = experiments_.find(id);
    return found == experiments_.end() ? nullptr : &found->second;
}

/// Nodes that another experiment's open round has: a client holds one assignment.
std::set<std::string> Coordinator::busy_for(ExperimentId id) const {
    std::set<std::string> names;
    for (const auto& [other, experiment] : experiments_) {
        if (other != id) {
            for (auto& node : experiment.members_in_round()) {
                names.insert(std::move(node));
            }
        }
    }
    return names;
}

}  // namespace causeway
