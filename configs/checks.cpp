// The questions to model/, data/, aggregation/, split/ and compression/, and the combinations that make no sense.
//
// Each joint check names the fields it looks at: when one of them is broken, the check would only repeat that mistake.
#include "configs/checks.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "aggregation/aggregator.h"
#include "aggregation/column_sums.h"
#include "common/text.h"
#include "compression/codec.h"
#include "configs/figures.h"
#include "configs/initial_model.h"
#include "configs/presets.h"
#include "configs/snapshot_rule.h"
#include "configs/split_checks.h"
#include "configs/statistics.h"
#include "configs/workload.h"
#include "data/data_options.h"
#include "data/partition.h"
#include "model/chain.h"
#include "model/local_state.h"
#include "model/optimizer.h"
#include "model/presets.h"
#include "split/flow.h"
#include "split/grouping.h"

namespace causeway {

namespace {

constexpr std::size_t max_name_bytes = 64;  // names appear in certificates, paths and tables

constexpr std::size_t most_with_statistics = 3;  // lines of augment: the statistics are the fourth step

using FoundMistakes = std::vector<Inconsistency>;

Result<std::string> invalid(std::string message) {
    return fail(ErrorKind::invalid, "bad_configuration", std::move(message));
}

/// Registries hold entries or pointers to them, under different words for the name.
template <class Entries, class Name>
std::vector<std::string> names_of(const Entries& entries, Name name) {
    std::vector<std::string> names;
    for (const auto& entry : entries) {
        names.emplace_back(name(entry));
    }
    return names;
}

/// The chain sees input and loss as well as layers; each has its own key in the file.
std::string path_of(LayerError::Place place) {
    switch (place) {
        case LayerError::Place::input:
            return "data.shape";
        case LayerError::Place::loss:
            return "model.loss";
        case LayerError::Place::layer:
            break;
    }
    return "model.layers";
}

void check_layers(const Experiment& experiment, FoundMistakes& found) {
    const auto chain = parse_chain(experiment);
    if (chain) {
        return;
    }
    for (const auto& error : chain.error()) {
        const bool one_layer = error.place == LayerError::Place::layer;
        found.push_back({path_of(error.place), one_layer ? std::optional(error.layer) : std::nullopt, error.message});
    }
}

/// Norms that stay at the clients: the coordinator has none to evaluate with, and a segment on its tour has no home.
void check_local_norms(const Experiment& experiment, FoundMistakes& found) {
    const auto chain = parse_chain(experiment);
    if (!chain || !has_local_tensors(chain->table())) {
        return;
    }
    const auto* where = experiment.model.batch_norm == "local" ? "model.batch_norm" : "model.layers";
    if (experiment.mesh.stages > 1) {
        found.push_back({where,
                         {},
                         fmt::format("batch norms that stay at their clients do not go with {}, where one client's "
                                     "layers are handed to the next; choose batch_norm = \"average\" or \"group\"",
                                     experiment.regime.preset)});
    } else if (experiment.evaluation.at_coordinator()) {
        found.push_back({where,
                         {},
                         fmt::format("batch norms that stay at their clients leave the coordinator none to evaluate "
                                     "with; choose evaluation.where = \"clients\" (it is \"{}\")",
                                     experiment.evaluation.where)});
    }
}

/// When shapes cannot be followed: each layer's own words still say whether they are right.
void check_layer_texts(const Experiment& experiment, FoundMistakes& found) {
    for (std::size_t i = 0; i < experiment.model.layers.size(); ++i) {
        const auto preset = expand_preset(experiment.model.layers[i]);
        if (preset && *preset) {
            continue;
        }
        if (const auto layer = parse_layer(experiment.model.layers[i]); !layer) {
            found.push_back({"model.layers", i, layer.error().message});
        }
    }
}

/// Bounds are the fields' own; what is left is what the optimizer alone knows.
void check_optimizer(const Experiment& experiment, FoundMistakes& found) {
    const auto spec = optimizer_of(experiment);
    if (!spec) {
        found.push_back({"train.optimizer", {}, spec.error().message});
    }
    const auto& options = experiment.train.optimizer;
    if (options.kind == "sgd" && options.nesterov && options.momentum == 0) {
        found.push_back({"train.optimizer.nesterov",
                         {},
                         "nesterov looks ahead along the momentum; set a momentum "
                         "above 0"});
    }
}

/// Only a joint check sees these: a label's or scale's meaning, and parameters of one kind of partition.
void check_data(const Experiment& experiment, FoundMistakes& found) {
    for (const auto& error : check_data_options(data_options_of(experiment))) {
        found.push_back({"data", {}, error.message});
    }
    for (const auto& error : check_partition(partition_of(experiment))) {
        found.push_back({"data.partition", {}, error.message});
    }
}

/// One normalisation, of few enough numbers that they go into every assignment.
void check_statistics(const Experiment& experiment, FoundMistakes& found) {
    if (experiment.data.normalise == "none") {
        return;
    }
    const auto& augment = experiment.data.augment;
    if (std::ranges::any_of(augment, [](const auto& line) { return line.starts_with("normalise"); })) {
        found.push_back({"data.normalise", {}, "data.augment normalises already; leave one of the two out"});
    } else if (augment.size() > most_with_statistics) {
        found.push_back({"data.normalise", {}, fmt::format("goes with at most {} lines of augment",
                                                           most_with_statistics)});
    }
    if (const auto& shape = experiment.data.shape;
        !shape.empty() && shape.back() > static_cast<std::int64_t>(most_normalised_columns)) {
        found.push_back({"data.normalise",
                         {},
                         fmt::format("at most {} columns or channels, and shape ends with {}; flat images keep their "
                                     "one channel with shape = [height, width, 1]",
                                     most_normalised_columns, shape.back())});
    }
}

bool left_out(const Experiment& experiment, const char* path) {
    const auto place = experiment.places.find(path);
    return place == experiment.places.end() || place->second.origin == Place::Origin::defaulted;
}

/// The smallest cohort that is certain before anybody has joined.
std::uint32_t least_cohort(const Experiment& experiment) {
    return experiment.sync.cohort.of(experiment.sync.min_clients);
}

/// A count of updates that a round may not have members for. Left out, min_clients follows the quorum (reader.cpp).
void check_quorum(const Experiment& experiment, FoundMistakes& found) {
    const auto& sync = experiment.sync;
    if (sync.quorum.kind != CountOrShare::Kind::count) {
        return;
    }
    const auto quorum = sync.quorum.count;
    const bool counts = sync.cohort.kind == CountOrShare::Kind::count;
    const auto least = std::min(sync.min_clients, sync.cohort.of(sync.min_clients));
    if (counts && quorum > sync.cohort.count) {
        found.push_back({"sync.quorum",
                         {},
                         fmt::format("a quorum of {} can never be reached by a cohort of {}: lower it or draw a larger "
                                     "cohort",
                                     quorum, sync.cohort.count)});
    } else if (quorum > least && !left_out(experiment, "sync.min_clients")) {
        found.push_back({"sync.quorum",
                         {},
                         fmt::format("a quorum of {} can never be reached in a round of {}, which min_clients = {} "
                                     "permits: raise min_clients or lower the quorum",
                                     quorum, least, sync.min_clients)});
    }
}

/// With a share or `all` nothing is certain before members join; the coordinator then waits for min_clients.
void check_members(const Experiment& experiment, FoundMistakes& found) {
    const auto& sync = experiment.sync;
    check_quorum(experiment, found);
    if (sync.cohort.kind != CountOrShare::Kind::count) {
        return;
    }
    if (sync.min_clients > sync.cohort.count) {
        found.push_back({"sync.min_clients",
                         {},
                         fmt::format("min_clients {} is more than the cohort of {}: lower it "
                                     "or draw a larger cohort",
                                     sync.min_clients, sync.cohort.count)});
    }
}

/// Krum needs 2f + 3 members: such demands are met or refused now, not in the middle of a run.
void check_rule(const Experiment& experiment, FoundMistakes& found) {
    const auto cohort = least_cohort(experiment);
    const auto rule = parse_aggregator(experiment.sync.aggregator, {cohort, experiment.sync.quorum.of(cohort)});
    if (!rule) {
        found.push_back({"sync.aggregator", {}, rule.error().message});
    }
}

/// Without evaluations patience never ends, and between them it cannot be counted.
void check_patience(const Experiment& experiment, FoundMistakes& found) {
    const auto& evaluation = experiment.evaluation;
    if (evaluation.patience == 0) {
        return;
    }
    if (evaluation.where == "none") {
        found.push_back(
            {"evaluation.patience", {}, "patience needs evaluations: set where = \"coordinator\" or \"clients\""});
    }
    if (evaluation.patience > experiment.experiment.rounds) {
        found.push_back({"evaluation.patience",
                         {},
                         fmt::format("a patience of {} rounds never ends a run of {}: lower it, or leave it out",
                                     evaluation.patience, experiment.experiment.rounds)});
    }
    if (evaluation.patience < evaluation.every) {
        found.push_back({"evaluation.patience",
                         {},
                         fmt::format("a patience of {} rounds is shorter than the {} rounds between two evaluations",
                                     evaluation.patience, evaluation.every)});
    }
}

/// A figure that the loss does not give would leave every model equal.
void check_metric(const Experiment& experiment, FoundMistakes& found) {
    const auto loss = parse_loss(experiment.model.loss);
    const auto* metric = find_metric(experiment.evaluation.metric);
    if (!loss || metric == nullptr || !experiment.places.contains("evaluation.metric")) {
        return;
    }
    const bool regression = !loss->counts_correct();
    if (regression ? !metric->of_numbers : !metric->of_classes) {
        std::vector<std::string> fitting;
        for (const auto& one : all_metrics()) {
            if (regression ? one.of_numbers : one.of_classes) {
                fitting.emplace_back(one.name);
            }
        }
        found.push_back({"evaluation.metric",
                         {},
                         fmt::format("\"{}\" cannot be measured with the loss {}; that gives {}", metric->name,
                                     loss_names().at(static_cast<std::size_t>(loss->kind)), join(fitting, ", "))});
    }
}

void check_batch(const Experiment& experiment, FoundMistakes& found) {
    const auto& train = experiment.train;
    if (train.batch > 0 && train.microbatch > train.batch) {
        found.push_back(
            {"train.microbatch",
             {},
             fmt::format("a microbatch of {} is more than the batch of {}", train.microbatch, train.batch)});
    }
}

/// `needs` are the fields that it looks at.
struct JointCheck {
    std::vector<std::string_view> needs;
    void (*check)(const Experiment& experiment, FoundMistakes& found);
};

const std::vector<JointCheck>& joint_checks() {
    static const std::vector<JointCheck> checks = {
        {{"data.shape", "model.layers", "model.loss"}, check_layers},
        {{"data.shape", "model.layers", "model.loss", "model.batch_norm", "mesh.stages", "evaluation.where"},
         check_local_norms},
        {{"train.optimizer.kind", "train.optimizer.learning_rate", "train.optimizer.momentum",
          "train.optimizer.nesterov", "train.optimizer.beta1", "train.optimizer.beta2", "train.optimizer.epsilon",
          "train.optimizer.weight_decay", "train.schedule.kind"},
         check_optimizer},
        {{"data.label", "data.shape", "data.scale", "data.categories", "data.augment", "data.normalise",
          "data.partition.kind",
          "data.partition.alpha", "data.partition.labels", "data.partition.power"},
         check_data},
        {{"data.shape", "data.augment", "data.normalise"}, check_statistics},
        {{"sync.cohort", "sync.quorum", "sync.min_clients"}, check_members},
        {{"sync.cohort", "sync.quorum", "sync.min_clients", "sync.aggregator"}, check_rule},
        {{"train.batch", "train.microbatch"}, check_batch},
        {{"evaluation.where", "evaluation.every", "evaluation.patience", "experiment.rounds"}, check_patience},
        {{"model.loss", "evaluation.metric"}, check_metric},
        {{"regime.preset", "mesh.stages", "mesh.replicas", "flow.kind"}, check_mesh},
        {{"data.shape", "model.layers", "model.loss", "regime.preset", "regime.cut", "mesh.stages", "flow.kind"},
         check_cut},
        {{"regime.preset", "regime.groups", "regime.grouping", "regime.group_lists", "mesh.replicas", "sync.cohort",
          "sync.min_clients"},
         check_groups},
        {{"regime.preset", "flow.kind", "codec.uplink", "codec.downlink"}, check_split_codec},
        {{"regime.preset", "flow.kind", "evaluation.where"}, check_split_evaluation},
        {{"regime.preset", "flow.kind", "train.optimizer_state", "train.clip_norm"}, check_split_training},
    };
    return checks;
}

}  // namespace

std::vector<std::string> known_aggregators() {
    return names_of(aggregator_entries(), [](const AggregatorEntry& entry) { return entry.name; });
}

std::vector<std::string> known_codecs() {
    return names_of(codec_entries(), [](const CodecEntry& entry) { return entry.name; });
}

std::vector<std::string> known_flows() {
    return names_of(flows(), [](const Flow* flow) { return flow->name; });
}

std::vector<std::string> known_groupings() {
    return names_of(groupings(), [](const Grouping& grouping) { return grouping.name; });
}

std::vector<std::string> known_optimizers() {
    return names_of(optimizer_kinds(), [](const OptimizerKind* kind) { return kind->name; });
}

std::vector<std::string> known_partitions() {
    return names_of(partitioners(), [](const Partitioner* partitioner) { return partitioner->kind; });
}

std::string unknown_name(std::string_view kind, std::string_view wrong, const std::vector<std::string>& known) {
    const auto start = fmt::format("unknown {} \"{}\"", kind, wrong.substr(0, 80));
    const auto nearest = nearest_name(wrong, known);
    const auto hint = nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : std::string();
    return fmt::format("{}{} known: {}", start, nearest ? hint : ";", join(known, ", "));
}

Result<std::string> check_name(const std::string& text) {
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.';
    });
    if (!plain || text.empty() || text.size() > max_name_bytes || text.front() == '.' || text.front() == '-') {
        return invalid(
            fmt::format("a name has 1 to {} letters, digits, dots, dashes or underscores and begins with a "
                        "letter, a digit or an underscore",
                        max_name_bytes));
    }
    return text;
}

/// Told apart: a preset that this version lacks, and a name that is none; each with what to use instead.
Result<std::string> check_preset(const std::string& text) {
    const auto available = available_presets();
    const auto* preset = find_preset(text);
    if (preset == nullptr) {
        std::vector<std::string> all;
        for (const auto& known : all_presets()) {
            all.push_back(known.name);
        }
        const auto nearest = nearest_name(text, all);
        return invalid(fmt::format("unknown preset \"{}\"; {}available: {}", text,
                                   nearest ? fmt::format("did you mean \"{}\"? ", *nearest) : std::string(),
                                   join(available, ", ")));
    }
    if (preset->toml.empty()) {
        return invalid(
            fmt::format("preset \"{}\" is not available in this version; available: {}", text, join(available, ", ")));
    }
    return text;
}

/// `average` belongs to a later version, in which optimizer state travels with the update.
Result<std::string> check_optimizer_state(const std::string& text) {
    if (text == "average") {
        return invalid("optimizer_state \"average\" is not available in this version; available: reset, keep");
    }
    if (text != "reset" && text != "keep") {
        return invalid(unknown_name("optimizer_state", text, {"reset", "keep"}));
    }
    return text;
}

Result<std::string> check_scale(const std::string& text) {
    if (text == "none") {
        return text;
    }
    TRY_ASSIGN(const auto scale, parse_scale(text));
    return to_text(scale);
}

/// "sex: f, m": a manifest can name columns and words that hold a comma or a colon.
Result<std::string> check_category(const std::string& text) {
    TRY_ASSIGN(const auto category, parse_category(text));
    return category.column + ": " + join(category.values, ", ");
}

Result<std::string> check_separator(const std::string& text) {
    TableForm form;
    TRY(set_table_form(form, "separator", text));
    return table_form_word(form, "separator");
}

Result<std::string> check_missing(const std::string& text) {
    TRY_ASSIGN(const auto rule, parse_missing(text));
    return to_text(rule);
}

Result<std::string> check_augment(const std::string& text) {
    TRY_ASSIGN(const auto step, parse_augment(text));
    return to_text(step);
}

Result<std::string> check_normalise(const std::string& text) {
    if (text == "none" || text == normalise_federated) {
        return text;
    }
    if (text.starts_with(std::string(normalise_federated) + " ")) {
        TRY_ASSIGN(const auto step, parse_augment("normalise" + text.substr(normalise_federated.size())));
        return std::string(normalise_federated) + to_text(step).substr(std::string_view("normalise").size());
    }
    return invalid(unknown_name("normalise", text, {"none", std::string(normalise_federated)}));
}

/// Here the name and the arguments; whether the cohort is large enough is a joint check.
Result<std::string> check_aggregator(const std::string& text) {
    constexpr std::uint32_t enough = 1'000'000;
    TRY_ASSIGN(const auto rule, parse_aggregator(text, {enough, enough}));
    return rule.text;
}

Result<std::string> check_codec(const std::string& text) {
    TRY_ASSIGN(const auto codec, parse_codec(text));
    return codec.text;
}

Result<std::string> check_loss(const std::string& text) {
    TRY_ASSIGN(const auto loss, parse_loss(text));
    return to_text(loss);
}

Result<std::string> check_init_from(const std::string& text) {
    TRY_ASSIGN(const auto from, parse_init_from(text));
    return from.digest ? from.name + "@" + from.digest->hex() : from.name;
}

Result<std::string> check_snapshot_every(const std::string& text) {
    TRY_ASSIGN(const auto rule, parse_snapshot_rule(text));
    return to_text(rule);
}

std::vector<Inconsistency> find_inconsistencies(const Experiment& experiment, const IsBroken& is_broken) {
    FoundMistakes found;
    if (!is_broken("model.layers") && (is_broken("data.shape") || is_broken("model.loss"))) {
        check_layer_texts(experiment, found);
    }
    for (const auto& joint : joint_checks()) {
        if (std::none_of(joint.needs.begin(), joint.needs.end(), is_broken)) {
            joint.check(experiment, found);
        }
    }
    return found;
}

}  // namespace causeway
