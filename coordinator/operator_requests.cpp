// See operator_requests.h.
#include "coordinator/operator_requests.h"

#include <algorithm>
#include <span>

#include "common/text.h"
#include "configs/reader.h"
#include "coordinator/limits.h"

namespace causeway {
namespace {

std::string names_or_none(const std::vector<std::string>& names) {
    return names.empty() ? "none" : join(names, ", ");
}

/// Online or not: an experiment may wait for its nodes, but not for a misspelt name.
Status check_dataset(const std::string& dataset, const Membership& members) {
    if (members.ever_declared(dataset)) {
        return {};
    }
    const auto known = members.known_datasets();
    const auto near = nearest_name(dataset, known);
    return fail(ErrorKind::not_found, "unknown_dataset",
                "no enrolled node ever declared the dataset \"" + dataset + "\"" +
                    (near ? "; did you mean \"" + *near + "\"?" : std::string(".")) + " Known datasets: " +
                    names_or_none(known) + ". A node declares one with `causeway join --data NAME=PATH`.");
}

Json describe_record(const ExperimentMachine& experiment, const RoundRecord& record) {
    return Json::object()
        .set("name", experiment.saved().name)
        .set("round", record.round)
        .set("model_sha256", record.model.hex())
        .set("bytes", record.model_bytes);
}

}  // namespace

/// From the newest: a name that was used twice means the last one.
Result<ExperimentId> find_experiment(const Experiments& experiments, const Json& body) {
    const auto& wanted = body.has("experiment") ? body["experiment"] : body["id"];
    if (wanted.is_null()) {
        return fail(ErrorKind::invalid, "missing_argument", "the request names no experiment");
    }
    const auto text = wanted.is_number() ? std::to_string(wanted.integer()) : wanted.text();
    std::vector<std::string> known;
    for (auto entry = experiments.rbegin(); entry != experiments.rend(); ++entry) {
        const auto& saved = entry->second.saved();
        if (text == std::to_string(entry->first) || text == saved.name) {
            return entry->first;
        }
        known.push_back(std::to_string(entry->first) + " (" + saved.name + ")");
    }
    known.resize(std::min<std::size_t>(known.size(), 10));
    return fail(ErrorKind::not_found, "unknown_experiment",
                "there is no experiment \"" + text + "\"; the newest are: " + names_or_none(known));
}

Result<Experiment> check_submission(const Json& body, const Membership& members, const NamedModels& models) {
    if (!body["file"].is_text()) {
        return fail(ErrorKind::invalid, "missing_argument", "experiment.submit needs the text of a file");
    }
    std::vector<std::string> overrides;
    for (const auto& item : body["set"].items()) {
        overrides.push_back(item.text());
    }
    auto experiment = read_experiment(body["file"].text(), body["file_name"].text("experiment.toml"), overrides);
    if (!experiment) {
        return fail(ErrorKind::invalid, "bad_configuration", to_text(experiment.error()));
    }
    TRY(check_dataset(experiment->data.dataset, members));
    TRY(pin_initial_model(*experiment, models));
    return *std::move(experiment);
}

Result<Json> describe_model(const ExperimentMachine& experiment, const Json& body) {
    const auto& records = experiment.records();
    if (body["best"].boolean()) {
        const auto* best = experiment.best();
        if (best == nullptr) {
            return fail(ErrorKind::not_found, "unknown_round",
                        "no round of the experiment is evaluated, so none is the best; leave out --best for the last");
        }
        return describe_record(experiment, *best);
    }
    const auto last = static_cast<std::int64_t>(records.size()) - 1;
    const auto round = body["round"].integer(last);
    if (round < 0 || round > last) {
        return fail(
            ErrorKind::not_found, "unknown_round",
            last < 0 ? "the experiment has no model yet; try again when its first round is committed"
                     : "round " + std::to_string(round) + " is not committed; the last one is " + std::to_string(last));
    }
    return describe_record(experiment, records[static_cast<std::size_t>(round)]);
}

Json list_experiments(const Experiments& experiments) {
    auto lines = Json::array();
    for (const auto& [id, experiment] : experiments) {
        lines.push(experiment.summary());
    }
    return Json::object().set("experiments", std::move(lines));
}

namespace {

Json describe_datasets(const std::vector<DatasetDeclaration>& datasets) {
    auto all = Json::array();
    for (const auto& dataset : datasets) {
        auto shape = Json::array();
        for (const auto size : dataset.shape) {
            shape.push(size);
        }
        all.push(Json::object()
                     .set("name", dataset.name)
                     .set("examples", dataset.examples)
                     .set("shape", std::move(shape))
                     .set("classes", dataset.classes)
                     .set("sha256", dataset.digest.hex()));
    }
    return all;
}

Json describe_node(const std::string& node, const Member* member, const std::vector<DatasetDeclaration>& datasets) {
    return Json::object()
        .set("node", node)
        .set("role", member != nullptr ? member->role : "client")
        .set("state", member == nullptr ? "offline"
                      : member->silent  ? "silent"
                                        : "online")
        .set("software", member != nullptr ? Json(member->software) : Json())
        .set("compute", member != nullptr ? Json(member->compute_signature) : Json())
        .set("datasets", describe_datasets(datasets));
}

}  // namespace

Json list_nodes(const Membership& members, const Experiments& experiments) {
    std::map<std::string, ExperimentId> working;
    for (const auto& [id, experiment] : experiments) {
        for (const auto& node : experiment.members_in_round()) {
            working[node] = id;
        }
    }
    std::map<std::string, Json> rows;
    for (const auto& [node, datasets] : members.declared()) {
        rows[node] = describe_node(node, members.by_node(node), datasets);
    }
    for (const auto& [node, member] : members.members()) {
        rows[node] = describe_node(node, &member, member.datasets);
    }
    auto all = Json::array();
    for (auto& [node, row] : rows) {
        const auto found = working.find(node);
        all.push(std::move(row.set("experiment", found == working.end() ? Json() : Json(found->second))));
    }
    return Json::object().set("nodes", std::move(all));
}

Status Watches::add(SessionId session, std::uint64_t request, ExperimentId experiment, Kind kind,
                    std::uint32_t from_round) {
    const auto own =
        std::count_if(watches_.begin(), watches_.end(), [&](const auto& watch) { return watch.session == session; });
    if (watches_.size() >= limits::watches || static_cast<std::size_t>(own) >= limits::watches_per_session) {
        return fail(ErrorKind::overloaded, "too_many_watches", "too many watches are open; end one first");
    }
    watches_.push_back({session, request, experiment, kind, from_round, 0});
    return {};
}

void Watches::close(SessionId session) {
    std::erase_if(watches_, [&](const auto& watch) { return watch.session == session; });
}

/// Each watcher gets a bounded number of events a step; who has fallen behind is served in the next ones.
bool Watches::send(const Experiments& experiments, CoordinatorEffects& effects) {
    bool more = false;
    std::erase_if(watches_, [&](auto& watch) {
        const auto found = experiments.find(watch.experiment);
        if (found == experiments.end()) {
            return true;
        }
        const auto& events = found->second.events();
        const bool ended = send_some(watch, events, effects);
        more = more || (!ended && watch.next < events.size());
        return ended;
    });
    return more;
}

/// True once the last event has been sent.
bool Watches::send_some(Watch& watch, const std::vector<Json>& events, CoordinatorEffects& effects) {
    for (std::size_t sent = 0; watch.next < events.size() && sent < limits::events_per_step;) {
        const auto& event = events[watch.next++];
        const bool last = event["event"].text() == "done";
        const bool wanted = watch.kind == Kind::watch && event["round"].integer() >= watch.from_round;
        if (last || wanted) {
            effects.send.push_back({watch.session, Reply{watch.request, last, event.dump(), std::nullopt}});
            ++sent;
        }
        if (last) {
            return true;
        }
    }
    return false;
}

}  // namespace causeway
