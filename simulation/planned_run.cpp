// See planned_run.h.
#include "simulation/planned_run.h"

#include <fmt/format.h>

#include "common/random.h"
#include "simulation/modelled_world.h"
#include "simulation/real_work.h"

namespace causeway::simulation {
namespace {

constexpr const char* host_name = "host-1";
constexpr double unlimited = 1e15;  // bytes a second
constexpr Duration longest = std::chrono::hours(1000);

Dataset random_examples(const Chain& chain, std::uint64_t count, std::uint64_t layer) {
    RandomStream random({.seed = 1, .purpose = "planned-run", .layer = layer});
    Dataset data;
    data.name = "drawn";
    data.shape = chain.input();
    data.classes = static_cast<std::uint32_t>(chain.classes());
    data.features.resize(count * static_cast<std::size_t>(element_count(chain.input())));
    for (auto& value : data.features) {
        value = static_cast<float>(random.uniform());
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        data.labels.push_back(static_cast<std::uint32_t>(random.below(data.classes)));
    }
    return data;
}

std::string quoted(const std::vector<std::string>& words) {
    std::string list;
    for (const auto& word : words) {
        list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", word);
    }
    return "[" + list + "]";
}

/// Lines of [regime].
Result<std::string> regime_of(const PlanInput& input, const PlanRow& row) {
    if (row.cut == 0) {
        return std::string("preset = \"fedavg\"\n");
    }
    auto text = fmt::format("preset = \"{}\"\ncut = \"{}\"\n", row.regime, row.cut);
    if (input.overlap > 0) {
        text += fmt::format("overlap = {}\n", input.overlap);
    }
    if (row.regime == "splitfed-v1" || row.regime == "splitfed-v2") {
        return text;
    }
    TRY_ASSIGN(const auto groups, planned_groups(input, row.cut, row.groups));
    std::string lists;
    for (const auto& group : groups) {
        std::vector<std::string> names;
        for (const auto& client : group) {
            names.push_back(client.name);
        }
        lists += (lists.empty() ? "" : ", ") + quoted(names);
    }
    return text + (row.regime == "gsfl" ? fmt::format("groups = {}\n", row.groups) : "") +
           "grouping = \"fixed\"\ngroup_lists = [" + lists + "]\n";
}

Result<std::string> experiment_of(const PlanInput& input, const PlanRow& row, const PlannedModel& model) {
    TRY_ASSIGN(const auto regime, regime_of(input, row));
    const auto copy = row.cut > 0 && !input.handover_copies ? "handover_copy = \"none\"\n" : "";
    return fmt::format(
        "[experiment]\nname = \"planned\"\nrounds = 1\n[data]\ndataset = \"drawn\"\nlabel = \"last\"\nshape = [{}]\n"
        "[model]\nlayers = {}\n[train]\n{}\nbatch = {}\nlocal_epochs = {}\n[regime]\n{}[sync]\nquorum = \"100%\"\n"
        "min_clients = {}\n{}[evaluation]\nwhere = \"none\"\n",
        fmt::join(input.chain.input(), ", "), quoted(model.layers), model.optimizer, input.batch, input.local_epochs,
        regime, input.clients.size(), copy);
}

LinkOptions link_of(double uplink, double downlink, double delay) {
    return {{from_seconds(delay), uplink > 0 ? uplink : unlimited},
            {from_seconds(delay), downlink > 0 ? downlink : unlimited}};
}

/// The plan's clients and host, each with its part of the work.
struct PlannedCast {
    RealCoordinatorWork coordinator;
    std::vector<std::unique_ptr<RealClientWork>> nodes;
};

WorldOptions world_of(const PlanInput& input, const std::shared_ptr<Trainer>& trainer, PlannedCast& cast) {
    WorldOptions options;
    options.work = &cast.coordinator;
    options.coordinator.federation = "simulated";
    options.coordinator.max_sessions = sessions_for(input.clients.size() + 1);
    const LayerTable table{input.times, input.batch};
    const auto add = [&](const std::string& name, Dataset data, LinkOptions link, double slowness) {
        auto& work = cast.nodes.emplace_back(std::make_unique<RealClientWork>(trainer, name, std::move(data)));
        work->set_layer_times(table);
        ClientSetup setup;
        setup.name = name;
        setup.work = work.get();
        setup.link = link;
        setup.slowness = slowness;
        setup.splits = true;
        options.clients.push_back(std::move(setup));
    };
    for (const auto& client : input.clients) {
        add(client.name, random_examples(input.chain, client.examples, cast.nodes.size()),
            link_of(client.uplink, client.downlink, client.delay), client.slowness);
        options.clients.back().datasets = {cast.nodes.back()->declaration()};
    }
    const auto& host = input.host;
    add(host_name, Dataset{}, link_of(host.uplink, host.downlink, host.delay), host.slowness);
    options.clients.back().role = "host";
    return options;
}

}  // namespace

Result<double> run_planned(const PlanInput& input, const PlanRow& row, const PlannedModel& model,
                           const std::shared_ptr<Trainer>& trainer) {
    TRY_ASSIGN(const auto file, experiment_of(input, row, model));
    PlannedCast cast{RealCoordinatorWork(trainer, std::nullopt), {}};
    World world(world_of(input, trainer, cast));
    TRY(start_and_wait(world));
    world.submit(file);
    const auto refused = [&world] { return !world.replies().empty() && world.replies().front().error.has_value(); };
    (void)world.run_until([&] { return world.over(1) || refused(); }, longest);
    if (world.state(1) != "succeeded") {
        const auto why = refused() ? world.replies().front().error->message : world.reason(1);
        return fail(ErrorKind::io, "run_failed", fmt::format("a planned round ended as {}: {}", world.state(1), why));
    }
    for (const auto& rule : world.broken_rules()) {
        return fail(ErrorKind::corrupt, "rule_broken", "a rule of the simulated federation is broken: " + rule);
    }
    return world.log(1).commits.back().summary["seconds"].number();
}

}  // namespace causeway::simulation
