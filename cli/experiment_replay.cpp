// `experiment replay`: the decision log of a run, repeated on this machine without time, network or failures.
//
// The work is the daemons' own (simulation/real_work.h), with each node's data from a file here; the same inputs and
// decisions must give the same bits, round by round. What a resumed experiment goes on from is repeated before it.
// Main thread, which is then the trainer's.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_choice.h"
#include "cli/run_history.h"
#include "cli/simulate_cast.h"
#include "common/text.h"
#include "configs/dataset_file.h"
#include "configs/reader.h"
#include "configs/workload.h"

namespace causeway::cli {
namespace {

using namespace simulation;

/// `--data`: files of single nodes, and one that is to be divided as the demo does it.
struct GivenData {
    std::map<std::string, DataPaths> of_nodes;
    DataPaths divided;
};

Result<GivenData> parse_given(const std::vector<std::string>& arguments) {
    std::map<std::string, std::vector<std::string>> by_node;
    for (const auto& argument : arguments) {
        const auto colon = argument.find(':');  // one behind the `=` belongs to the path
        const bool named = colon != std::string::npos && colon < argument.find('=');
        by_node[named ? argument.substr(0, colon) : ""].push_back(named ? argument.substr(colon + 1) : argument);
    }
    GivenData given;
    for (const auto& [node, own] : by_node) {
        TRY_ASSIGN(auto paths, parse_data_arguments(own));
        (node.empty() ? given.divided : given.of_nodes[node]) = std::move(paths);
    }
    return given;
}

/// Nodes whose update is part of a commit: their data is needed.
std::set<std::string> nodes_of(const std::vector<RunHistory>& lineage) {
    std::set<std::string> nodes;
    for (const auto& history : lineage) {
        for (const auto& commit : history.log.commits) {
            for (const auto& [node, update] : commit.participants) {
                nodes.insert(node);
            }
        }
    }
    return nodes;
}

/// In how many parts the demo divided: every one of its clients has to be there, so none has a higher number.
std::uint32_t demo_clients(const std::set<std::string>& nodes, const Experiment& experiment) {
    constexpr std::uint32_t most = 100'000;
    auto clients = std::clamp(experiment.sync.min_clients, 1U, most);
    for (const auto& node : nodes) {
        std::uint32_t number = 0;
        for (const char c : node.starts_with("client-") ? node.substr(7) : std::string()) {
            number = c >= '0' && c <= '9' && number < most ? 10 * number + static_cast<std::uint32_t>(c - '0') : most;
        }
        if (number > 0 && number < most && node == demo_client_name(number - 1)) {
            clients = std::max(clients, number);
        }
    }
    return clients;
}

/// Who works again.
struct Nodes {
    std::unique_ptr<RealCoordinatorWork> coordinator;
    std::map<std::string, std::unique_ptr<RealClientWork>> clients;
};

Status check_names(const GivenData& given, const std::set<std::string>& nodes, const Experiment& experiment) {
    TRY(refuse_other_datasets(experiment, given.divided));
    for (const auto& [node, paths] : given.of_nodes) {
        if (!nodes.contains(node)) {
            const auto near = nearest_name(node, std::vector<std::string>(nodes.begin(), nodes.end()));
            return fail(ErrorKind::invalid, "bad_data_argument",
                        fmt::format("--data {}:...: no update of \"{}\" counted in the experiment{}", node, node,
                                    near ? "; did you mean \"" + *near + "\"?" : ""));
        }
        TRY(refuse_other_datasets(experiment, paths));
    }
    return {};
}

Error data_missing(const std::vector<std::string>& missing, const std::string& dataset) {
    constexpr std::size_t most_shown = 10;
    std::vector<std::string> words;
    for (std::size_t i = 0; i < std::min(most_shown, missing.size()); ++i) {
        words.push_back(fmt::format("--data {}:{}=PATH", missing[i], dataset));
    }
    const std::vector<std::string> names(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(words.size()));
    return {ErrorKind::not_found, "data_missing",
            fmt::format("the data of {}{} are not here, and the replay trains on them again; add {}{}. If a demo "
                        "divided one file among its clients, --data {}=PATH names that file",
                        join(names, ", "), missing.size() > most_shown ? ", ..." : "", join(words, " "),
                        missing.size() > most_shown ? " ..." : "", dataset)};
}

/// The parts that a demo gave to those who have no file of their own.
Status add_divided(const Experiment& experiment, const DataPaths& paths, const std::set<std::string>& nodes,
                   const std::shared_ptr<Trainer>& trainer, Nodes& cast) {
    const auto clients = demo_clients(nodes, experiment);
    TRY_ASSIGN(auto parts, demo_parts(experiment, paths, clients));
    for (std::uint32_t i = 0; i < clients; ++i) {
        const auto name = demo_client_name(i);
        if (nodes.contains(name) && !cast.clients.contains(name)) {
            cast.clients[name] = std::make_unique<RealClientWork>(trainer, name, std::move(parts.of_clients[i]));
        }
    }
    return {};
}

Result<Nodes> make_nodes(const Experiment& experiment, const GivenData& given, const DataPaths& models,
                         const std::set<std::string>& needed) {
    TRY(check_names(given, needed, experiment));
    TRY_ASSIGN(auto device, Device::open("auto"));
    const auto trainer = std::make_shared<Trainer>(std::move(device));
    Nodes nodes;
    nodes.coordinator = std::make_unique<RealCoordinatorWork>(trainer, std::nullopt);
    TRY(name_models(models, *nodes.coordinator));
    for (const auto& [node, paths] : given.of_nodes) {
        TRY_ASSIGN(auto file, read_dataset_file(paths.begin()->second, data_options_of(experiment)));
        file.train.name = experiment.data.dataset;
        nodes.clients[node] =
            std::make_unique<RealClientWork>(trainer, node, std::move(file.train), std::move(file.test));
    }
    if (!given.divided.empty()) {
        TRY(add_divided(experiment, given.divided, needed, trainer, nodes));
    }
    std::vector<std::string> missing;
    std::ranges::copy_if(needed, std::back_inserter(missing),
                         [&](const std::string& node) { return !nodes.clients.contains(node); });
    if (!missing.empty()) {
        return fail(data_missing(missing, experiment.data.dataset));
    }
    return nodes;
}

/// What may be why bits differ is said before the work: data that are not as the node declares them, another build.
Status warn(OperatorSession& session, const GivenData& given, const SaveExperiment& saved, Output output) {
    const std::string build = "causeway " CAUSEWAY_VERSION;
    if (!saved.build.empty() && saved.build != build) {
        output.line(
            fmt::format("note: {} ran it and this is {}; other builds may make other bits", saved.build, build));
    }
    TRY_ASSIGN(const auto list, session.ask("node.list", Json::object()));
    for (const auto& row : list["nodes"].items()) {
        const auto node = given.of_nodes.find(row["node"].text());
        for (const auto& declared : row["datasets"].items()) {
            const auto path =
                node == given.of_nodes.end() ? DataPaths::const_iterator() : node->second.find(declared["name"].text());
            if (node == given.of_nodes.end() || path == node->second.end()) {
                continue;
            }
            TRY_ASSIGN(const auto file, read_dataset_file(path->second, DataOptions{}));  // as nodes declare them
            if (file.digest.hex() != declared["sha256"].text()) {
                output.line(fmt::format("note: {} is not what {} declares as \"{}\" today", path->second.string(),
                                        node->first, declared["name"].text()));
            }
        }
    }
    return {};
}

void show_replay(const ReplayedRound& round, ExperimentId experiment, Output output) {
    auto differs = Json::array();
    for (const auto& node : round.differs) {
        differs.push(node);
    }
    output.object(Json::object()
                      .set("event", "replayed")
                      .set("experiment", experiment)
                      .set("round", round.round)
                      .set("same", round.same())
                      .set("model_sha256", round.model.hex())
                      .set("recorded_sha256", round.recorded.hex())
                      .set("differs", std::move(differs)));
    output.line(round.same() ? fmt::format("round {:>4}  same   {}", round.round, round.model.short_hex())
                             : fmt::format("round {:>4}  other  {} here, {} recorded{}", round.round,
                                           round.model.short_hex(), round.recorded.short_hex(),
                                           round.differs.empty() ? "" : "; updates: " + join(round.differs, ", ")));
}

/// What differs is most often the data of those whose updates do.
Error other_bits(const ReplayedRound& round, ExperimentId experiment) {
    const auto whose = round.differs.empty() ? std::string("the model itself: another build of the engine?")
                                             : "the updates of " + join(round.differs, ", ") +
                                                   ": are these the data that they trained on, and is this the build?";
    return {ErrorKind::corrupt, "other_bits",
            fmt::format("experiment {}: round {} has other bits than the run. It differs by {}", experiment,
                        round.round, whose)};
}

/// Up to the first difference: after it every round would differ.
Result<std::optional<ReplayedRound>> replay_one(const RunLog& log, Nodes& nodes, Output output) {
    std::optional<ReplayedRound> last;
    const auto find = [&](const std::string& node) -> Result<ClientWork*> { return nodes.clients.at(node).get(); };
    const auto each = [&](const ReplayedRound& round) {
        show_replay(round, log.saved.experiment, output);
        last = round;
        return round.same();
    };
    TRY(replay(log, *nodes.coordinator, find, each));
    return last;
}

Result<int> replay_all(const ReplayOptions& options, Output output) {
    TRY_ASSIGN(const auto given, parse_given(options.data));
    TRY_ASSIGN(const auto models, parse_model_arguments(options.models));
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    TRY_ASSIGN(const auto id, choose_experiment_id(*session, options.experiment, options.state, output));
    TRY_ASSIGN(const auto lineage, fetch_lineage(*session, id));
    const auto& saved = lineage.back().log.saved;
    if (lineage.back().log.commits.empty()) {
        return fail(
            ErrorKind::refused, "nothing_committed",
            fmt::format("experiment {} ({}) has committed nothing yet, so there is nothing to replay", id, saved.name));
    }
    TRY_ASSIGN(const auto experiment, read_experiment_or_fail(saved.file, saved.name));
    TRY_ASSIGN(auto nodes, make_nodes(experiment, given, models, nodes_of(lineage)));
    TRY(warn(*session, given, saved, output));
    std::optional<ReplayedRound> last;
    for (const auto& history : lineage) {
        if (lineage.size() > 1) {
            output.line(fmt::format("experiment {} ({})", history.log.saved.experiment, history.log.saved.name));
        }
        TRY_ASSIGN(last, replay_one(history.log, nodes, output));
        if (last && !last->same()) {
            return output.error(other_bits(*last, history.log.saved.experiment));
        }
    }
    const auto& end = lineage.back().log.commits.back();
    output.object(Json::object()
                      .set("event", "replay")
                      .set("experiment", id)
                      .set("rounds", end.round)
                      .set("same", true)
                      .set("model_sha256", end.model.hex()));
    output.line(fmt::format("the same bits in every round, to round {}\nSHA-256 of the model {}", end.round,
                            end.model.hex()));
    return exit_done;
}

}  // namespace

int run_experiment_replay(const ReplayOptions& options, Output output) {
    const auto code = replay_all(options, output);
    return code ? *code : output.error(code.error());
}

}  // namespace causeway::cli
