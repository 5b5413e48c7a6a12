// The joint checks of split regimes. Messages name the way out, since a cut is the one choice here that needs to know
// the model: they list the cuts that exist.
#include "configs/split_checks.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "common/text.h"
#include "compression/codec.h"
#include "configs/presets.h"
#include "configs/split_plan.h"
#include "configs/workload.h"
#include "model/chain.h"
#include "split/flow.h"

namespace causeway {

namespace {

using FoundSplitMistakes = std::vector<Inconsistency>;

/// What a flow asks of the mesh.
struct FlowShape {
    std::string_view flow;
    std::uint32_t stages;
    std::vector<std::string> replicas;
};

const FlowShape* shape_of(std::string_view flow) {
    static const std::vector<FlowShape> shapes = {
        {"local-epochs", 1, {"cohort"}},
        {"split", 2, {"one", "groups", "cohort"}},
        {"u-shaped", 3, {"one"}},
        {"batch-major", 2, {"cohort"}},
    };
    const auto found = std::ranges::find(shapes, flow, &FlowShape::flow);
    return found == shapes.end() ? nullptr : &*found;
}

std::string cut_list(const Chain& chain) {
    std::vector<std::string> names;
    for (const auto cut : valid_cuts(chain)) {
        names.push_back(cut_name(chain, cut));
    }
    return names.empty() ? "this model has no place for one" : "possible: " + join(names, ", ");
}

std::optional<std::size_t> item_of(const Experiment& experiment, std::size_t i) {
    return experiment.regime.cut.size() > 1 ? std::optional(i) : std::nullopt;
}

/// A name or an index, one by one: every wrong one is reported.
std::vector<std::uint32_t> read_cuts(const Experiment& experiment, const Chain& chain, FoundSplitMistakes& found) {
    std::vector<std::uint32_t> cuts;
    for (std::size_t i = 0; i < experiment.regime.cut.size(); ++i) {
        if (const auto cut = chain.cut_index(experiment.regime.cut[i])) {
            cuts.push_back(static_cast<std::uint32_t>(*cut));
        } else {
            found.push_back({"regime.cut", item_of(experiment, i), cut.error().message + "; " + cut_list(chain)});
        }
    }
    return cuts;
}

/// Each stage must be there, the first must hide the inputs, and a host must have something to learn.
void check_stages(const Experiment& experiment, const Chain& chain, const std::vector<std::uint32_t>& cuts,
                  FoundSplitMistakes& found) {
    for (std::size_t i = 0; i < cuts.size(); ++i) {
        const auto at = item_of(experiment, i);
        const auto name = cut_name(chain, cuts[i]);
        const auto begin = i == 0 ? 0 : cuts[i - 1];
        const auto next = i + 1 < cuts.size() ? cuts[i + 1] : static_cast<std::uint32_t>(chain.layer_count());
        if (i > 0 && cuts[i] <= begin) {
            found.push_back({"regime.cut", at,
                             fmt::format("the cut after {} does not lie behind the first one, after {}", name,
                                         cut_name(chain, begin))});
        } else if (i == 0 && !chain.gradient_needed(cuts[i])) {
            found.push_back({"regime.cut", at,
                             fmt::format("no layer before the cut after {} learns: clients would send their raw "
                                         "inputs; {}",
                                         name, cut_list(chain))});
        } else if (i == 0 && next > cuts[i] && chain.arena_range(ArenaKind::trainable, cuts[i], next).size() == 0) {
            found.push_back(
                {"regime.cut", at,
                 fmt::format("no layer of the host learns when the cut is after {}; {}", name, cut_list(chain))});
        }
    }
}

/// Names twice in the lists; the lists against a number that says otherwise.
void check_lists(const Experiment& experiment, FoundSplitMistakes& found) {
    const auto& regime = experiment.regime;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < regime.group_lists.size(); ++i) {
        for (const auto& name : regime.group_lists[i]) {
            if (!seen.insert(name).second) {
                found.push_back({"regime.group_lists", i, fmt::format("\"{}\" is in the lists twice", name)});
            }
        }
    }
    const auto lists = regime.group_lists.size();
    if (experiment.mesh.replicas == "one" && lists != 1) {
        found.push_back(
            {"regime.group_lists", {}, fmt::format("{} lists; this preset has one relay: give one list", lists)});
    } else if (experiment.places.contains("regime.groups") && lists != regime.groups) {
        found.push_back(
            {"regime.groups",
             {},
             fmt::format("groups is {}, and group_lists has {} lists; leave out groups", regime.groups, lists)});
    }
}

/// The fewest clients in session whose cohort fills all groups.
std::uint32_t clients_for(const Experiment& experiment, std::uint32_t groups) {
    const auto& cohort = experiment.sync.cohort;
    auto clients = std::max(groups, 1U);
    if (cohort.kind == CountOrShare::Kind::share) {
        clients = std::max(clients, static_cast<std::uint32_t>(static_cast<double>(groups - 1) / cohort.share));
        while (cohort.of(clients) < groups) {
            ++clients;
        }
    }
    return clients;
}

/// Nodes compare the preset's name with the program that they are sent, and refuse where it is another's.
void check_preset_flow(const Experiment& experiment, FoundSplitMistakes& found) {
    const auto& preset = experiment.regime.preset;
    const auto flow = flow_of_preset(preset);
    if (flow.empty() || flow == experiment.flow.kind) {
        return;
    }
    found.push_back({"flow.kind",
                     {},
                     fmt::format("the flow of preset \"{}\" is {}, not {}: nodes refuse a regime under another's "
                                 "name; choose preset = {}",
                                 preset, flow, experiment.flow.kind,
                                 join(presets_with_flow(experiment.flow.kind), " or "))});
}

}  // namespace

bool is_split(const Experiment& experiment) {
    return experiment.flow.kind != "local-epochs";
}

std::uint32_t groups_of(const Experiment& experiment) {
    if (experiment.mesh.replicas == "cohort") {
        return 0;
    }
    const auto& regime = experiment.regime;
    if (regime.grouping == "fixed") {
        return static_cast<std::uint32_t>(regime.group_lists.size());
    }
    return experiment.mesh.replicas == "one" ? 1 : regime.groups;
}

void follow_groups(Experiment& experiment) {
    const auto groups = groups_of(experiment);
    if (!is_split(experiment) || groups == 0) {
        return;
    }
    if (experiment.mesh.replicas == "groups") {
        experiment.regime.groups = groups;
    }
    if (!experiment.places.contains("sync.min_clients")) {
        experiment.sync.min_clients = clients_for(experiment, groups);
    }
}

void check_mesh(const Experiment& experiment, FoundSplitMistakes& found) {
    check_preset_flow(experiment, found);
    const auto* shape = shape_of(experiment.flow.kind);
    if (shape == nullptr) {
        return;
    }
    const auto& mesh = experiment.mesh;
    if (mesh.stages != shape->stages) {
        found.push_back({"mesh.stages",
                         {},
                         fmt::format("the flow {} has {} stage{}, not {}; leave [mesh] and [flow] to the preset",
                                     shape->flow, shape->stages, shape->stages == 1 ? "" : "s", mesh.stages)});
    }
    if (std::ranges::find(shape->replicas, mesh.replicas) == shape->replicas.end()) {
        found.push_back({"mesh.replicas",
                         {},
                         fmt::format("the flow {} has the replicas {}, not \"{}\"; leave [mesh] and [flow] to the "
                                     "preset",
                                     shape->flow, join(shape->replicas, " or "), mesh.replicas)});
    }
}

void check_cut(const Experiment& experiment, FoundSplitMistakes& found) {
    const auto chain = parse_chain(experiment);
    const auto* shape = shape_of(experiment.flow.kind);
    if (!is_split(experiment) || !chain || shape == nullptr || shape->stages != experiment.mesh.stages) {
        return;
    }
    const auto before = found.size();
    const auto cuts = read_cuts(experiment, *chain, found);
    if (found.size() != before) {
        return;
    }
    if (cuts.size() + 1 != shape->stages) {
        found.push_back({"regime.cut",
                         {},
                         shape->stages == 3 ? "u-shaped needs two cuts: where the host's layers begin, and where the "
                                              "client's last layers do, such as [\"relu\", \"relu:2\"]"
                                            : fmt::format("{} cuts; the flow {} has one", cuts.size(), shape->flow)});
        return;
    }
    check_stages(experiment, *chain, cuts, found);
}

void check_groups(const Experiment& experiment, FoundSplitMistakes& found) {
    const auto& sync = experiment.sync;
    const auto groups = groups_of(experiment);
    if (!is_split(experiment) || groups == 0) {
        return;
    }
    if (experiment.regime.grouping == "fixed") {
        check_lists(experiment, found);
    }
    const auto* where = experiment.regime.grouping == "fixed" ? "regime.group_lists" : "regime.groups";
    if (sync.cohort.kind == CountOrShare::Kind::count && groups > sync.cohort.count) {
        found.push_back(
            {where,
             {},
             fmt::format("{} groups of a cohort of {}: a group has at least one client", groups, sync.cohort.count)});
    } else if (const auto least = clients_for(experiment, groups);
               experiment.places.contains("sync.min_clients") && sync.min_clients < least) {
        found.push_back({"sync.min_clients",
                         {},
                         fmt::format("{} groups need at least {} clients in session; min_clients is {}: raise it or "
                                     "leave it out",
                                     groups, least, sync.min_clients)});
    }
}

/// Segments travel after every turn and smashed data after every batch: codecs for updates have no meaning there.
void check_split_codec(const Experiment& experiment, FoundSplitMistakes& found) {
    for (const auto& [path, text] :
         {std::pair{"codec.uplink", experiment.codec.uplink}, std::pair{"codec.downlink", experiment.codec.downlink}}) {
        const auto codec = parse_codec(text);
        if (is_split(experiment) && codec && codec->fidelity == Fidelity::lossy) {
            found.push_back({path,
                             {},
                             fmt::format("\"{}\" loses bits, and a relay hands on whole segments; with a cut it must "
                                         "be a lossless codec, such as \"dense\"",
                                         text)});
        }
    }
}

void check_split_evaluation(const Experiment& experiment, FoundSplitMistakes& found) {
    if (is_split(experiment) && experiment.evaluation.at_clients()) {
        found.push_back({"evaluation.where",
                         {},
                         fmt::format("\"{}\": clients hold their segment only; with a cut the model is measured at the "
                                     "\"coordinator\", or \"none\"",
                                     experiment.evaluation.where)});
    }
}

void check_split_training(const Experiment& experiment, FoundSplitMistakes& found) {
    if (!is_split(experiment)) {
        return;
    }
    if (experiment.train.optimizer_state == "keep") {
        found.push_back({"train.optimizer_state",
                         {},
                         "\"keep\" needs a client that stays with its state; with a cut it goes on with the relay and "
                         "starts anew with each round: \"reset\""});
    }
    if (experiment.train.clip_norm > 0) {
        found.push_back({"train.clip_norm",
                         {},
                         "the norm of the whole gradient is known to nobody when the model is cut; leave it out"});
    }
}

}  // namespace causeway
