// See operator_requests.h.
#include "coordinator/operator_requests.h"

#include <algorithm>

#include "common/json_lists.h"
#include "common/text.h"
#include "configs/reader.h"
#include "configs/statistics.h"
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

}  // namespace

Json describe_record(const ExperimentMachine& experiment, const RoundRecord& record) {
    auto model = Json::object()
                     .set("name", experiment.saved().name)
                     .set("round", record.round)
                     .set("model_sha256", record.model.hex())
                     .set("bytes", record.model_bytes);
    const auto numbers = found_statistics(experiment.config());
    return numbers.empty() ? model : model.set("normalise", numbers);
}

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
    auto experiment = read_experiment(body["file"].text(), body["file_name"].text("experiment.toml"),
                                      texts_of(body["set"]));
    if (!experiment) {
        return fail(ErrorKind::invalid, "bad_configuration", to_text(experiment.error()));
    }
    TRY(check_dataset(experiment->data.dataset, members));
    TRY(pin_initial_model(*experiment, models));
    return *std::move(experiment);
}

namespace {

/// What may not be another in a resumed experiment, with the reason.
Status check_unchanged(const Experiment& before, const Experiment& after) {
    const auto refuse = [](const std::string& field, const std::string& why) {
        return fail(ErrorKind::invalid, "cannot_change",
                    field + " cannot change when an experiment is resumed: " + why + "; submit a new experiment");
    };
    if (before.model.layers != after.model.layers) {
        return refuse("model.layers", "the committed model has the tensors of the layers that it was trained with");
    }
    if (before.data.shape != after.data.shape) {
        return refuse("data.shape", "the committed model takes examples of the shape that it was trained with");
    }
    if (before.data.normalise != after.data.normalise) {
        return refuse("data.normalise", "the committed model was trained on values that were normalised so");
    }
    if (before.data.normalise != "none" && before.data.scale != after.data.scale) {
        return refuse("data.scale", "data.normalise has the means of values that were scaled so");
    }
    if (before.model.init_from != after.model.init_from) {
        return refuse("model.init_from", "it goes on from the last commit, not from another model");
    }
    if (after.train.optimizer_state == "keep" && before.train.optimizer.kind != after.train.optimizer.kind) {
        return refuse("train.optimizer.kind",
                      "clients keep the state of the old optimizer; with train.optimizer_state=reset it can");
    }
    return {};
}

}  // namespace

Result<Experiment> check_resume(const ExperimentMachine& parent, const Json& body, const Membership& members) {
    const auto named = "experiment " + std::to_string(parent.id()) + " (" + parent.saved().name + ")";
    if (!parent.over()) {
        return fail(ErrorKind::refused, "not_over",
                    named + " is " + parent.saved().state + "; only one that is over is resumed. Cancel it first");
    }
    if (parent.records().empty()) {
        return fail(ErrorKind::refused, "nothing_committed", named + " has committed nothing; submit it again");
    }
    auto overrides = texts_of(body["set"]);
    if (body["rounds"].is_number()) {
        overrides.push_back("experiment.rounds=" + std::to_string(body["rounds"].integer()));
    }
    auto experiment = read_experiment(parent.saved().file, parent.saved().name, overrides);
    if (!experiment) {
        return fail(ErrorKind::invalid, "bad_configuration", to_text(experiment.error()));
    }
    TRY(check_unchanged(parent.config(), *experiment));
    TRY(check_dataset(experiment->data.dataset, members));
    const auto done = parent.records().back().round;
    if (experiment->experiment.rounds <= done) {
        return fail(ErrorKind::invalid, "no_rounds_left",
                    named + " has committed " + std::to_string(done) + " rounds and is to have " +
                        std::to_string(experiment->experiment.rounds) +
                        " in all; ask for more with --rounds N, N above " + std::to_string(done));
    }
    return *std::move(experiment);
}

Result<std::optional<Json>> describe_model(const ExperimentMachine& experiment, const Json& body) {
    const auto& records = experiment.records();
    if (body["best"].boolean()) {
        const auto* best = experiment.best();
        if (best == nullptr) {
            return fail(ErrorKind::not_found, "unknown_round",
                        "no round of the experiment has a value of its evaluation.metric, so none is the best; leave "
                        "out --best for the last");
        }
        return describe_record(experiment, *best);
    }
    if (records.empty()) {
        return fail(ErrorKind::not_found, "unknown_round",
                    "the experiment has no model yet; try again when its first round is committed");
    }
    const auto round = body["round"].integer(records.back().round);
    if (round < records.front().round || round > records.back().round) {
        return fail(ErrorKind::not_found, "unknown_round",
                    "round " + std::to_string(round) + " is not committed here; there are rounds " +
                        std::to_string(records.front().round) + " to " + std::to_string(records.back().round));
    }
    const auto* record = records.find(static_cast<std::uint32_t>(round));
    return record == nullptr ? std::nullopt : std::optional(describe_record(experiment, *record));
}

Json list_experiments(const Experiments& experiments, const std::vector<ExperimentId>& queue) {
    auto lines = Json::array();
    for (const auto& [id, experiment] : experiments) {
        const auto place = std::ranges::find(queue, id);
        lines.push(experiment.summary().set(
            "place", place == queue.end() ? Json() : Json(std::uint64_t(place - queue.begin()) + 1)));
    }
    return Json::object().set("experiments", std::move(lines));
}

namespace {

Json describe_datasets(const std::vector<DatasetDeclaration>& datasets) {
    auto all = Json::array();
    for (const auto& dataset : datasets) {
        all.push(Json::object()
                     .set("name", dataset.name)
                     .set("examples", dataset.examples)
                     .set("shape", json_of(dataset.shape))
                     .set("classes", dataset.classes)
                     .set("shares_labels", !dataset.labels.empty())
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
        .set("addresses", member != nullptr ? json_of(member->addresses) : Json::array())
        .set("memory", member != nullptr && member->memory > 0 ? Json(member->memory) : Json())
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

}  // namespace causeway
