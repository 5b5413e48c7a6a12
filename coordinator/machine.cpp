// See machine.h. Each event is handled whole, then finish() looks at what has become due. Who is next is in
// machine_queue.cpp, what operators ask in machine_requests.cpp.
#include "coordinator/machine.h"

#include <algorithm>

#include "configs/reader.h"
#include "coordinator/assignment.h"
#include "coordinator/limits.h"

namespace causeway {
namespace {

/// Rounds are numbered without gaps; anything else did not come from this machine.
bool contiguous(const SaveExperiment& saved, const RoundHistory& rounds) {
    return rounds.empty() || (!rounds.has_gaps() && rounds.front().round == saved.parent_round);
}

bool speaks_our_version(const Hello& hello) {
    return hello.version_min <= protocol_version && hello.version_max >= protocol_version_min;
}

/// Those that can count. A weight is a number of examples, so more of them than a weight may be are nobody's data: as
/// a number they would only make sums and sizes of others overflow. Labels of more examples than there are say nothing.
std::vector<DatasetDeclaration> countable(const Hello& hello, SessionId session, CoordinatorEffects& effects) {
    std::vector<DatasetDeclaration> kept;
    for (const auto& dataset : hello.datasets) {
        if (dataset.examples >= static_cast<std::uint64_t>(limits::weight_bound)) {
            effects.send.push_back({session, ErrorNotice{ErrorKind::invalid, "too_many_examples",
                                                         "dataset \"" + dataset.name +
                                                             "\" is left out: " + std::to_string(dataset.examples) +
                                                             " examples, and less than 2^29 can count"}});
            continue;
        }
        kept.push_back(dataset);
        std::uint64_t most = 0;
        for (const auto label : dataset.labels) {
            most = std::max(most, label);
        }
        if (most > dataset.examples) {
            kept.back().labels.clear();
        }
    }
    return kept;
}

std::string too_many_sessions(const CoordinatorOptions& options) {
    auto text =
        "the coordinator serves at most " + std::to_string(options.max_sessions) + " nodes and operators at one time";
    if (!options.sessions_bound.empty()) {
        text += " (" + options.sessions_bound + "); its admin raises that by " + options.sessions_raised_by;
    }
    return text;
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
    if (assignment) {
        assignment->continues = ancestors_of(recovered.saved);
    }
    if (!assignment) {
        unusable_[id] = "unreadable: " + assignment.error().message;
    } else if (!contiguous(recovered.saved, recovered.rounds)) {
        unusable_[id] = "corrupt: the store's rounds have gaps";
    }
    auto known = recovered;
    if (!contiguous(known.saved, known.rounds)) {
        known.rounds = {};
    }
    auto identity = identity_of(known.saved);
    if (known.saved.parent != 0 && known.rounds.empty() && !identity.origin) {
        unusable_[id] = "corrupt: the store has not the commit that it goes on from";
    }
    const auto [entry, added] = experiments_.try_emplace(id, std::move(identity), known, config.value_or(Experiment{}),
                                                         assignment.value_or(Assign{}));
    if (!entry->second.over()) {
        unfinished_.insert(id);
    }
}

/// What a resumed experiment goes on from. Parents have lower numbers, so they are there before their children.
ExperimentMachine::Identity Coordinator::identity_of(const SaveExperiment& saved) const {
    ExperimentMachine::Identity identity{
        .epoch = epoch_, .model_path = options_.model_path, .build = options_.build, .origin = {}, .best_before = {}};
    const auto parent = experiments_.find(saved.parent);
    if (parent == experiments_.end()) {
        return identity;
    }
    if (const auto* record = parent->second.records().find(saved.parent_round)) {  // its last
        identity.origin = *record;
    }
    if (const auto* best = parent->second.best()) {
        identity.best_before = *best;
    }
    return identity;
}

CoordinatorEffects Coordinator::start(Instant now) {
    CoordinatorEffects effects;
    for (const auto& [id, reason] : unusable_) {
        experiments_.at(id).fail({now, members_, {}, effects}, reason);
    }
    for (const auto id : unfinished_) {
        experiments_.at(id).resume({now, members_, busy_for(id), effects});
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

// ---------------------------------------------------------------- sessions

void Coordinator::on(Instant now, const SessionOpened& event, CoordinatorEffects& effects) {
    const auto refuse = [&](const char* code, const char* why) { effects.close.push_back({event.session, code, why}); };
    if (!speaks_our_version(event.hello)) {
        return refuse("version", "no protocol version is spoken by both sides; upgrade the older one");
    }
    const bool is_operator = event.role == "operator";
    if (members_.session_count() >= options_.max_sessions + (is_operator ? limits::sessions_for_operators : 0)) {
        return effects.close.push_back(  // not for good: another's place becomes free
            {event.session, "too_many_sessions", too_many_sessions(options_), ErrorKind::overloaded});
    }
    if (event.hello.datasets.size() > limits::datasets_per_node || event.hello.held.size() > limits::held_per_node ||
        event.hello.experiments.size() > limits::held_per_node) {
        return refuse("hello_too_long", "too many datasets or held updates in one hello");
    }
    // From here on the session is the node's; an older one of it is closed.
    effects.send.push_back({event.session, Welcome{std::min(event.hello.version_max, protocol_version), event.session,
                                                   epoch_, options_.federation}});
    auto opened = event;
    opened.hello.datasets = countable(event.hello, event.session, effects);
    const auto& member = members_.open(opened, effects);
    if (member.role == "client") {
        answer_known(member, event.hello.experiments, effects);
        member_ready(now, member, event.hello.held, effects);
    } else if (member.role == "host") {
        answer_known(member, event.hello.experiments, effects);
        host_ready(now, member, effects);
    }
}

/// A node that was away when an experiment ended still keeps its state: it hears now that it may let go.
void Coordinator::answer_known(const Member& member, const std::vector<std::uint64_t>& known,
                               CoordinatorEffects& effects) const {
    for (const auto id : known) {
        const auto found = experiments_.find(id);
        if (found == experiments_.end()) {
            effects.send.push_back({member.session, Ended{id, "failed", "this coordinator knows no such experiment"}});
        } else if (found->second.over()) {
            effects.send.push_back(
                {member.session, Ended{id, found->second.saved().state, found->second.saved().reason}});
        }
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
    for (const auto& [id, updates] : held_by_experiment) {
        if (auto* experiment = find(id); experiment != nullptr && experiment->over()) {
            experiment->member_ready({now, members_, {}, effects}, member, updates);
        }
    }
    for (const auto id : unfinished_) {
        experiments_.at(id).member_ready({now, members_, busy_for(id), effects}, member, held_by_experiment[id]);
    }
}

/// A host may serve any of them, and several.
void Coordinator::host_ready(Instant now, const Member& member, CoordinatorEffects& effects) {
    for (const auto id : unfinished_) {
        experiments_.at(id).host_ready({now, members_, busy_for(id), effects}, member);
    }
}

void Coordinator::member_lost(Instant now, const std::string& node, bool session_gone, CoordinatorEffects& effects) {
    for (const auto id : unfinished_) {
        experiments_.at(id).member_lost({now, members_, busy_for(id), effects}, node, session_gone);
    }
}

void Coordinator::on(Instant now, const SessionClosed& event, CoordinatorEffects& effects) {
    watches_.close(event.session);
    if (const auto node = members_.close(now, event.session); !node.empty()) {
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
    } else if (member != nullptr && member->role == "host") {
        host_ready(now, *member, effects);
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
    if ((member->role != "client" && member->role != "host") || member->silent) {
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
        measure(*member, *offer);
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
    measurements_.forget(event.node);
    for (const auto session : members_.revoke(event.node)) {
        watches_.close(session);
        effects.close.push_back(
            {session, "revoked",
             "this identity was " + why + "; to come back, ask for a new token and join with a new state folder"});
    }
    for (const auto id : unfinished_) {
        experiments_.at(id).member_revoked({now, members_, busy_for(id), effects}, event.node, why);
    }
}

void Coordinator::on(Instant, const Tick&, CoordinatorEffects&) {}  // finish() does what is due

void Coordinator::on(Instant now, const StoodStill&, CoordinatorEffects&) {
    members_.stood_still(now);
}

// ---------------------------------------------------------------- results of jobs

void Coordinator::on(Instant now, const ModelMade& event, CoordinatorEffects& effects) {
    if (auto* experiment = find(event.experiment)) {
        experiment->on_model_made({now, members_, busy_for(event.experiment), effects}, event);
    }
}

void Coordinator::on(Instant now, const RoundOpened& event, CoordinatorEffects& effects) {
    if (auto* experiment = find(event.experiment)) {
        experiment->on_round_opened({now, members_, busy_for(event.experiment), effects}, event);
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

void Coordinator::on(Instant now, const CommitStored& event, CoordinatorEffects& effects) {
    if (auto* experiment = find(event.experiment)) {
        experiment->on_commit_stored({now, members_, {}, effects}, event);
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

ExperimentMachine* Coordinator::find(ExperimentId id) {
    const auto found = experiments_.find(id);
    return found == experiments_.end() ? nullptr : &found->second;
}

}  // namespace causeway
