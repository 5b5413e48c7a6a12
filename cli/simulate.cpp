// `causeway simulate`: the whole federation on a virtual clock, with the real machines, model, data and sums.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "cli/live_view.h"
#include "common/file.h"
#include "common/random.h"
#include "common/text.h"
#include "configs/canonical.h"
#include "configs/dataset_file.h"
#include "configs/workload.h"
#include "simulation/real_work.h"
#include "simulation/world.h"

namespace causeway::cli {
namespace {

using namespace simulation;

constexpr std::uint64_t largest_model = std::uint64_t{16} << 30;
constexpr Duration longest_round = std::chrono::hours(2);  // virtual; the machines' own deadlines come first

/// The federation's people: one coordinator's work and one per client.
struct Cast {
    std::unique_ptr<RealCoordinatorWork> coordinator;
    std::vector<std::unique_ptr<RealClientWork>> clients;
};

/// Divides the dataset exactly as the demo does: same seed, same partition, same names.
Result<Cast> make_cast(const Experiment& experiment, const DataPaths& paths, std::uint32_t clients) {
    const auto options = data_options_of(experiment);
    TRY(refuse_other_datasets(experiment, paths));
    TRY_ASSIGN(const auto path, find_dataset(experiment.data.dataset, paths));
    TRY_ASSIGN(auto file, read_dataset_file(path, options));
    TRY_ASSIGN(auto raw, std::move(file).whole());
    raw.name = experiment.data.dataset;
    TRY_ASSIGN(const auto division,
               divide(raw, experiment.data.holdout, partition_of(experiment), clients, experiment.experiment.seed));
    TRY_ASSIGN(auto device, Device::open("auto"));
    const auto trainer = std::make_shared<Trainer>(std::move(device));
    Cast cast;
    std::optional<Dataset> held_out;
    if (!division.held_out.empty() && experiment.evaluation.at_coordinator()) {
        held_out = subset(raw, division.held_out);
        TRY(apply_options(*held_out, options));
    }
    cast.coordinator = std::make_unique<RealCoordinatorWork>(trainer, std::move(held_out));
    for (std::uint32_t i = 0; i < clients; ++i) {
        cast.clients.push_back(
            std::make_unique<RealClientWork>(trainer, demo_client_name(i), subset(raw, division.parts[i])));
    }
    return cast;
}

/// Each file to both who need it: the machine, which checks, and the work, which starts from it.
Result<NamedModels> name_models(const DataPaths& paths, RealCoordinatorWork& work) {
    NamedModels models;
    for (const auto& [name, path] : paths) {
        TRY_ASSIGN(auto file, read_file(path, largest_model));
        auto described = describe_named_model(file);
        if (!described) {
            return fail(with_context(described.error(), path.string()));
        }
        models.emplace(name, *std::move(described));
        work.add_model(name, std::move(file));
    }
    return models;
}

WorldOptions make_world(const Cast& cast, NamedModels models, std::uint64_t seed) {
    WorldOptions options;
    options.coordinator.models = std::move(models);
    options.coordinator.federation = "simulated";
    options.work = cast.coordinator.get();
    RandomStream random({.seed = seed, .purpose = "links"});
    for (std::uint32_t i = 0; i < cast.clients.size(); ++i) {
        ClientSetup client;
        client.name = demo_client_name(i);
        client.work = cast.clients[i].get();
        client.datasets = {cast.clients[i]->declaration()};
        client.link.delay = std::chrono::milliseconds(1 + random.below(20));
        options.clients.push_back(std::move(client));
    }
    return options;
}

/// Feeds the view as the rounds come; returns the `done` event, or null when virtual time ran out.
Json play(World& world, LiveView& view, const Experiment& experiment) {
    std::size_t shown = 0;
    Json done;
    const auto step = [&] {
        const auto events = world.events();
        for (; shown < events.size(); ++shown) {
            view.event(events[shown]);
            done = events[shown]["event"].text() == "done" ? events[shown] : done;
        }
        return !done.is_null();
    };
    (void)world.run_until(step, longest_round * (experiment.experiment.rounds + 1));
    return done;
}

Status write_model(const SimulateOptions& options, Cast& cast, const Json& done) {
    if (options.out.empty()) {
        return {};
    }
    TRY_ASSIGN(const auto digest, digest_from_hex(done["model_sha256"].text()));
    TRY_ASSIGN(const auto bytes, cast.coordinator->read_model(digest));
    return write_file_durably(options.out, bytes);
}

Result<int> simulate(const SimulateOptions& options, Output output) {
    TRY_ASSIGN(auto experiment, load_experiment(options.file, options.set));
    require_all(experiment, options.clients);
    TRY_ASSIGN(const auto paths, parse_data_arguments(options.data));
    TRY_ASSIGN(auto cast, make_cast(experiment, paths, options.clients));
    TRY_ASSIGN(const auto model_paths, parse_model_arguments(options.models));
    TRY_ASSIGN(auto models, name_models(model_paths, *cast.coordinator));
    World world(make_world(cast, std::move(models), options.seed));
    world.start();
    const auto all_online = [&] {
        return world.coordinator().machine()->members().members().size() == options.clients;
    };
    if (!world.run_until(all_online, std::chrono::minutes(1))) {
        return fail(ErrorKind::timed_out, "no_sessions", "the simulated clients did not connect; this is a bug");
    }
    world.submit(canonical_toml(experiment));
    world.request("experiment.watch", Json::object().set("experiment", 1).set("from", 1));
    for (const auto& reply : world.replies()) {
        if (reply.error) {
            return fail(reply.error->kind, reply.error->code, reply.error->message);
        }
    }
    LiveView view(output);
    const auto done = play(world, view, experiment);
    if (done.is_null()) {
        return fail(ErrorKind::timed_out, "no_end", "the simulated experiment did not end; this is a bug");
    }
    TRY(write_model(options, cast, done));
    if (done["state"].text() != "succeeded") {
        return exit_failed;
    }
    output.line(fmt::format("model {}  SHA-256 {}",
                            options.out.empty() ? "(not written; --out FILE keeps it)" : options.out,
                            done["model_sha256"].text()));
    return exit_done;
}

}  // namespace

int run_simulate(const SimulateOptions& options, Output output) {
    const auto code = simulate(options, output);
    return code ? *code : output.error(code.error());
}

}  // namespace causeway::cli
